/**
 * Input that is wrong or hostile: each mistake is reported to the object that made it, and no other
 * object is affected.
 */
import { describe, expect, it } from "vitest";
import { admit } from "../../src/api/admission/admit.ts";
import { keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { OwnerVerdict, RouteVerdict } from "../../src/engine/verdicts/verdicts.ts";
import { certificateFile } from "./case-file.ts";
import { TEST_SETTINGS } from "./settings.ts";

function admitted(object: unknown): Resource {
  const { resource, errors } = admit(object, { defaultNamespace: "default" });
  if (resource === undefined) throw new Error(JSON.stringify(errors));
  return resource;
}

function load(objects: Iterable<unknown>, settings: Partial<typeof TEST_SETTINGS> = {}): Engine {
  const engine = new Engine({ ...TEST_SETTINGS, ...settings });
  engine.apply(
    Array.from(objects, (object) => admitted(object)).map((resource) => ({ key: keyOf(resource), resource })),
  );
  return engine;
}

function owner(engine: Engine, key: string): OwnerVerdict {
  return engine.verdict(key) as OwnerVerdict;
}

function gateway(listeners: readonly object[], spec: object = {}): object {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "gw", namespace: "infra" },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners,
      ...spec,
    },
  };
}

function https(name: string, secret: string): object {
  return {
    name,
    port: 443,
    protocol: "HTTPS",
    hostname: `${name}.example.com`,
    tls: { certificateRefs: [{ name: secret }] },
  };
}

function secret(name: string, certificate: string, key: string): object {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace: "infra" },
    type: "kubernetes.io/tls",
    stringData: { "tls.crt": certificate, "tls.key": key },
  };
}

const CERTIFICATE = certificateFile("a.example.com.crt");
const KEY = certificateFile("a.example.com.key");

describe("a certificate that cannot be used", () => {
  const truncated = `${CERTIFICATE.slice(0, 200)}\n-----END CERTIFICATE-----\n`;
  it.each([
    ["no certificate", "hello", KEY, "tls.crt holds no PEM certificate"],
    ["truncated", truncated, KEY, "tls.crt holds a certificate (number 1) that cannot be read"],
    ["no key", CERTIFICATE, "hello", "tls.key holds no PEM private key"],
    [
      "another certificate's key",
      CERTIFICATE,
      certificateFile("b.example.com.key"),
      "does not belong to tls.crt",
    ],
  ])("is reported at its listener alone: %s", (_what, certificate, key, message) => {
    const engine = load([
      gateway([https("bad", "bad"), https("good", "good")]),
      secret("bad", certificate, key),
      secret("good", CERTIFICATE, KEY),
    ]);
    const [bad, good] = owner(engine, "Gateway/infra/gw").listeners;
    expect(bad?.conditions.find(({ type }) => type === "ResolvedRefs")).toMatchObject({
      status: "False",
      reason: "InvalidCertificateRef",
      message: expect.stringContaining(message) as unknown,
    });
    expect(
      good?.conditions.every(({ type, status }) => status === (type === "Conflicted" ? "False" : "True")),
    ).toBe(true);
    expect(JSON.stringify([...engine.verdicts()])).not.toContain("PRIVATE KEY");
    expect([...engine.plan()].filter(({ type }) => type === "listener")).toHaveLength(1);
  });
});

describe("a regular expression", () => {
  function routeWith(patterns: readonly string[]): Engine {
    return load([
      gateway([{ name: "web", port: 80, protocol: "HTTP" }]),
      {
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "HTTPRoute",
        metadata: { name: "app", namespace: "infra" },
        spec: {
          parentRefs: [{ name: "gw" }],
          rules: patterns.map((value) => ({ matches: [{ path: { type: "RegularExpression", value } }] })),
        },
      },
    ]);
  }

  it.each([
    ["does not compile", "("],
    ["needs what linear matching cannot give", "(a)\\1"],
    ["repeats repetitions", "((a{1000}){1000}){1000}"],
    ["is a small text for a large program", "(\\w?){1000}"],
    ["is many such programs", "(x{10}){100}".repeat(70)],
  ])("that %s drops its rule alone", (_what, pattern) => {
    const engine = routeWith([pattern, "/fine"]);
    const [parent] = (engine.verdict("HTTPRoute/infra/app") as RouteVerdict).parents;
    const condition = parent?.conditions.find(({ type }) => type === "PartiallyInvalid");
    expect(condition).toMatchObject({ status: "True", reason: "UnsupportedValue" });
    expect(condition?.message).toMatch(/^Dropped Rule 0: the regular expression for path /);
    expect(condition?.message.length).toBeLessThan(1500);
    const hosts = [...engine.plan()].flatMap((item) => (item.type === "host" ? item.rules : []));
    expect(hosts.map(({ match }) => match.path?.value)).toEqual(["/fine"]);
  });

  it("that would explode in a backtracking engine is served", () => {
    const engine = routeWith(["(a+)+b", "(a|a)*c"]);
    const [parent] = (engine.verdict("HTTPRoute/infra/app") as RouteVerdict).parents;
    expect(parent?.conditions.map(({ type, status }) => `${type}=${status}`)).toEqual([
      "Accepted=True",
      "ResolvedRefs=True",
    ]);
  });
});

describe("very many listeners", () => {
  const LISTENERS = 64;

  function* crowd(sets: number): Iterable<object> {
    yield gateway([{ name: "web", port: 80, protocol: "HTTP", hostname: "shared.example.com" }]);
    for (let s = 0; s < sets; s++) {
      yield {
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "ListenerSet",
        metadata: { name: `set-${s}`, namespace: "team" },
        spec: {
          parentRef: { name: "gw", namespace: "infra" },
          listeners: Array.from({ length: LISTENERS }, (_, l) => ({
            name: `listener-${l}`,
            port: 80,
            protocol: "HTTP",
            hostname: `l${l}.s${s}.example.com`,
          })),
        },
      };
    }
  }

  it("are served, and one set more or less costs no more among many than among few", () => {
    const costs = [2, 200].map((sets) => {
      const engine = load(crowd(sets));
      expect(owner(engine, "Gateway/infra/gw").attachedListenerSets).toBe(sets);
      const before = engine.recomputed;
      const { plan } = engine.apply([{ key: "ListenerSet/team/set-1", resource: undefined }]);
      expect(plan.removes).toHaveLength(LISTENERS);
      return engine.recomputed - before;
    });
    expect(costs[1]).toBe(costs[0]);
  });

  it("beyond a limit are refused one by one, in order of precedence", () => {
    const engine = load(crowd(100), { maxListenersPerGateway: 1 + LISTENERS });
    const reasons = [...engine.verdicts()].map(([key, verdict]) => {
      const [first] = (verdict as OwnerVerdict).listeners;
      return [key, first?.conditions[0]?.reason] as const;
    });
    expect(
      reasons
        .filter(([, reason]) => reason === "Accepted")
        .map(([key]) => key)
        .toSorted(),
    ).toEqual(["Gateway/infra/gw", "ListenerSet/team/set-0"]);
    expect(reasons.filter(([, reason]) => reason === "TooManyListeners")).toHaveLength(99);
  });
});

it("names of the greatest length give messages that an API server accepts", () => {
  const label = "n".repeat(63);
  const long = [label, label, label, "n".repeat(61)].join(".");
  expect(long).toHaveLength(253);
  const listeners = Array.from({ length: 64 }, (_, i) => ({
    name: `${long.slice(0, 250)}${String(i).padStart(3, "0")}`,
    port: 443,
    protocol: i % 2 === 0 ? "HTTPS" : "TLS",
    hostname: `${long.slice(0, 251)}${String(i >> 1).padStart(2, "0")}`,
    tls: i % 2 === 0 ? { certificateRefs: [{ name: long, namespace: label }] } : { mode: "Passthrough" },
  }));
  const engine = load([
    { ...gateway([{ name: "web", port: 80, protocol: "HTTP" }]), metadata: { name: long, namespace: label } },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "ListenerSet",
      metadata: { name: long, namespace: label },
      spec: { parentRef: { name: long, namespace: label }, listeners },
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "ListenerSet",
      metadata: { name: long.replace(/^n/, "m"), namespace: label },
      spec: {
        parentRef: { name: long, namespace: label },
        listeners: listeners
          .map((listener, i) => ({
            ...listener,
            protocol: i === 0 ? "HTTP" : "TCP",
            port: i === 0 ? 81 : 81 + (i > 1 ? i : 0),
            hostname: undefined,
            tls: undefined,
          }))
          .map((listener) => JSON.parse(JSON.stringify(listener)) as object),
      },
    },
  ]);
  const conditions = [...engine.verdicts()].flatMap(([, verdict]) => {
    const { conditions: own, listeners: list } = verdict as OwnerVerdict;
    return [...own, ...list.flatMap((listener) => listener.conditions)];
  });
  expect(conditions.length).toBeGreaterThan(500);
  for (const { message, reason } of conditions) {
    expect(message.length).toBeLessThanOrEqual(32_768);
    expect(reason).toMatch(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/);
  }
  expect(owner(engine, `ListenerSet/${label}/${long}`).conditions[0]?.reason).toBe("ListenersNotValid");
});

describe("a listener on a port that data planes keep for themselves", () => {
  const settings = { reservedPorts: { from: 19900, to: 19999 } };
  const named = (name: string, port: number): object => ({ name, port, protocol: "HTTP" });

  it("is refused, and the port is not opened", () => {
    const engine = load(
      [gateway([named("below", 19899), named("first", 19900), named("last", 19999), named("above", 20000)])],
      settings,
    );
    const accepted = owner(engine, "Gateway/infra/gw").listeners.map(({ name, conditions }) => {
      const { reason } = conditions.find(({ type }) => type === "Accepted") ?? {};
      return [name, reason];
    });
    expect(accepted).toEqual([
      ["below", "Accepted"],
      ["first", "PortUnavailable"],
      ["last", "PortUnavailable"],
      ["above", "Accepted"],
    ]);
    const ports = [...engine.plan()].flatMap((item) => (item.type === "port" ? [item.port] : []));
    expect(ports.sort()).toEqual([19899, 20000]);
  });

  it("is not assigned such a port either", () => {
    const set = {
      apiVersion: "gateway.networking.x-k8s.io/v1alpha1",
      kind: "XListenerSet",
      metadata: { name: "set", namespace: "infra" },
      spec: { parentRef: { name: "gw" }, listeners: [{ name: "any", protocol: "HTTP" }] },
    };
    const range = { ...settings, portRange: { from: 19950, to: 20000 } };
    const engine = load([gateway([named("web", 80)]), set], range);
    expect(owner(engine, "XListenerSet/infra/set").listeners.map(({ port }) => port)).toEqual([20000]);
  });
});
