import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import { GATEWAY_GROUP, type Resource } from "../../../src/api/resource.ts";
import { Interest } from "../../../src/sources/kubernetes/interest.ts";

const OURS = "mergeway.dev/controller";

describe("interest in Secrets", () => {
  const gatewayClass = (controllerName: string): Resource =>
    ({ kind: "GatewayClass", metadata: { name: "c" }, spec: { controllerName } }) as Resource;
  /** Secrets by name, or by `namespace/name` where they are elsewhere. */
  const owner = (kind: string, name: string, secrets: readonly string[], rest: object): Resource =>
    ({
      kind,
      metadata: { name, namespace: "n" },
      spec: {
        ...rest,
        listeners: secrets.map((secret) => {
          const [own = "", elsewhere] = secret.split("/");
          const place = elsewhere === undefined ? { name: own } : { namespace: own, name: elsewhere };
          return { tls: { certificateRefs: [{ group: "", kind: "Secret", ...place }] } };
        }),
      },
    }) as unknown as Resource;
  const gateway = (secrets: readonly string[]): Resource =>
    owner("Gateway", "g", secrets, { gatewayClassName: "c" });
  const set = (name: string, secrets: readonly string[], parent = "g"): Resource =>
    owner("ListenerSet", name, secrets, { parentRef: { group: "", kind: "Gateway", name: parent } });

  function take(interest: Interest, resource: Resource): string {
    const { wanted, unwanted } = interest.take(keyOf(resource), resource);
    return [...wanted.map((key) => `+${key}`), ...unwanted.map((key) => `-${key}`)].join(" ");
  }

  test("follows the chain from class to Gateway to set, in any order of arrival", () => {
    const interest = new Interest(OURS);
    expect(take(interest, set("s", ["a", "b"]))).toBe("");
    expect(take(interest, gateway(["a"]))).toBe("");
    expect(take(interest, gatewayClass(OURS))).toBe("+Secret/n/a +Secret/n/b");
    expect(take(interest, gateway([]))).toBe("");
    expect(take(interest, set("s", ["b"]))).toBe("-Secret/n/a");
    expect(take(interest, set("t", ["b", "c"]))).toBe("+Secret/n/c");
    expect(take(interest, set("s", ["b"], "other"))).toBe("");
    expect(take(interest, gatewayClass("other.example/controller"))).toBe("-Secret/n/b -Secret/n/c");
    expect(take(interest, gatewayClass(OURS))).toBe("+Secret/n/b +Secret/n/c");
    expect(interest.take("Gateway/n/g", undefined).unwanted).toEqual(["Secret/n/b", "Secret/n/c"]);
  });

  test("Secrets of a TrafficPolicy count while it refers to them", () => {
    const policy = (settings: object): Resource =>
      ({ kind: "TrafficPolicy", metadata: { name: "p", namespace: "n" }, spec: settings }) as Resource;
    const interest = new Interest(OURS);
    const basicAuth = { secretRef: { name: "users" } };
    const apiKeys = { secretRef: { name: "keys" }, headers: ["x-api-key"] };
    expect(take(interest, policy({ overrides: { basicAuth } }))).toBe("+Secret/n/users");
    expect(take(interest, policy({ overrides: { basicAuth }, defaults: { apiKeys } }))).toBe(
      "+Secret/n/keys",
    );
    expect(take(interest, policy({ defaults: { apiKeys } }))).toBe("-Secret/n/users");
    expect(interest.take("TrafficPolicy/n/p", undefined).unwanted).toEqual(["Secret/n/keys"]);
  });

  test("the ConfigMap of a TrafficPolicy's answer counts while the policy refers to it", () => {
    const policy = (name: string): Resource =>
      ({
        kind: "TrafficPolicy",
        metadata: { name: "p", namespace: "n" },
        spec: { defaults: { directResponse: { body: { configMapRef: { name, key: "k" } } } } },
      }) as unknown as Resource;
    const interest = new Interest(OURS);
    expect(take(interest, policy("one"))).toBe("+ConfigMap/n/one");
    const change = interest.take("TrafficPolicy/n/p", policy("two"));
    expect([change.wanted, change.unwanted]).toEqual([["ConfigMap/n/two"], ["ConfigMap/n/one"]]);
  });

  test("Secrets of parameters count while a Gateway or its class uses the parameters", () => {
    const parameters = (name: string, secret: string): Resource =>
      ({
        kind: "GatewayParameters",
        metadata: { name, namespace: "n" },
        spec: { tunnel: { credentialsSecretRef: { name: secret } } },
      }) as Resource;
    const reference = (name: string): object => ({ group: "mergeway.dev", kind: "GatewayParameters", name });
    const using = (name: string): Resource =>
      owner("Gateway", "g", [], {
        gatewayClassName: "c",
        infrastructure: { parametersRef: reference(name) },
      });
    const interest = new Interest(OURS);
    expect(take(interest, parameters("p", "a"))).toBe("");
    expect(take(interest, using("p"))).toBe("");
    expect(take(interest, gatewayClass(OURS))).toBe("+Secret/n/a");
    expect(take(interest, parameters("p", "b"))).toBe("+Secret/n/b -Secret/n/a");
    expect(take(interest, using("q"))).toBe("-Secret/n/b");
    expect(take(interest, parameters("q", "b"))).toBe("+Secret/n/b");
    expect(take(interest, gateway([]))).toBe("-Secret/n/b");
    const withDefaults = {
      ...gatewayClass(OURS),
      spec: { controllerName: OURS, parametersRef: { ...reference("p"), namespace: "n" } },
    };
    expect(take(interest, withDefaults as Resource)).toBe("+Secret/n/b");
    expect(interest.take("GatewayParameters/n/p", undefined).unwanted).toEqual(["Secret/n/b"]);
  });

  test("a change that alters no reference alters nothing", () => {
    const interest = new Interest(OURS);
    take(interest, gatewayClass(OURS));
    take(interest, gateway(["a"]));
    expect(take(interest, gateway(["a"]))).toBe("");
    expect(interest.isWanted("Secret/n/a")).toBe(true);
  });

  const grant = (name: string, from: string, to: object = {}): Resource =>
    ({
      kind: "ReferenceGrant",
      metadata: { name, namespace: "far" },
      spec: {
        from: [{ group: GATEWAY_GROUP, kind: from, namespace: "n" }],
        to: [{ group: "", kind: "Secret", ...to }],
      },
    }) as unknown as Resource;

  test("a Secret of another namespace is wanted while a grant permits its use, whichever comes first", () => {
    const interest = new Interest(OURS);
    take(interest, gatewayClass(OURS));
    take(interest, gateway([]));
    expect(take(interest, set("s", ["far/a", "far/b", "own"]))).toBe("+Secret/n/own");
    expect(interest.isWanted("Secret/far/a")).toBe(false);
    expect(take(interest, grant("one", "ListenerSet", { name: "a" }))).toBe("+Secret/far/a");
    expect(take(interest, grant("all", "ListenerSet"))).toBe("+Secret/far/b");
    expect(take(interest, set("t", ["far/c"]))).toBe("+Secret/far/c");
    expect(interest.take("ReferenceGrant/far/all", undefined).unwanted).toEqual([
      "Secret/far/b",
      "Secret/far/c",
    ]);
    expect(take(interest, set("s", []))).toBe("-Secret/far/a -Secret/n/own");
  });

  test("a grant for others, or for other things, permits nothing", () => {
    const interest = new Interest(OURS);
    take(interest, gatewayClass(OURS));
    take(interest, gateway([]));
    take(interest, set("s", ["far/a"]));
    const others = [
      grant("kind", "Gateway"),
      grant("name", "ListenerSet", { name: "b" }),
      grant("referent", "ListenerSet", { kind: "ConfigMap" }),
      grant("group", "ListenerSet", { group: "example.com" }),
      {
        ...grant("namespace", "ListenerSet"),
        metadata: { name: "namespace", namespace: "near" },
      } as Resource,
    ];
    for (const other of others) expect(take(interest, other)).toBe("");
    expect(take(interest, gateway(["far/a"]))).toBe("+Secret/far/a");
  });

  test("in whatever order references and grants come and go, what is wanted follows from what there is", () => {
    const names = ["far/a", "far/b", "a"];
    const secrets = fc.subarray(names);
    const to = fc.constantFrom({}, { name: "a" }, { name: "b" });
    const resource = fc.oneof(
      secrets.map((some) => gateway(some)),
      fc.tuple(fc.constantFrom("s", "t"), secrets).map(([name, some]) => set(name, some)),
      fc
        .tuple(fc.constantFrom("x", "y"), fc.constantFrom("Gateway", "ListenerSet"), to)
        .map(([name, from, what]) => grant(name, from, what)),
    );
    const step = fc.tuple(resource, fc.boolean());
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const interest = new Interest(OURS);
        const wanted = new Set<string>();
        const left = new Map<string, Resource>();
        take(interest, gatewayClass(OURS));
        for (const [each, isThere] of steps) {
          const key = keyOf(each);
          if (isThere) left.set(key, each);
          else left.delete(key);
          const change = interest.take(key, isThere ? each : undefined);
          for (const gone of change.unwanted) expect(wanted.delete(gone)).toBe(true);
          for (const come of change.wanted) wanted.add(come);
        }
        const afresh = new Interest(OURS);
        const expected = new Set<string>();
        for (const each of [gatewayClass(OURS), ...left.values()])
          for (const come of afresh.take(keyOf(each), each).wanted) expected.add(come);
        expect(wanted).toEqual(expected);
        for (const name of names)
          expect(interest.isWanted(secretKey(name))).toBe(wanted.has(secretKey(name)));
      }),
    );
  });
});

function secretKey(name: string): string {
  return `Secret/${name.includes("/") ? name : `n/${name}`}`;
}
