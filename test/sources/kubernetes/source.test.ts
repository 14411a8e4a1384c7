import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newestFirst } from "../../../src/sources/kubernetes/discovery.ts";
import { shaperOf } from "../../../src/sources/kubernetes/shape.ts";
import { KubernetesSource } from "../../../src/sources/kubernetes/source.ts";
import type { ResourceChange } from "../../../src/sources/source.ts";
import { type Answer, eventually, type Seen, ServerDouble } from "../../kubernetes/server-double.ts";

const OURS = "mergeway.dev/controller";

/** A server with one version of the Gateway API, whose answers a test can change by path. */
const GROUP = "/apis/gateway.networking.k8s.io";

let double: ServerDouble;
let overrides: Map<string, (seen: Seen, answer: Answer) => void>;
/** Who wants to know of a watch, by path. */
let watches: Map<string, (answer: Answer) => void>;
let version: string;
let batches: (readonly ResourceChange[])[];
let logged: string[];
let stop: () => Promise<void>;

function serve(seen: Seen, answer: Answer): void {
  const override = overrides.get(seen.path);
  if (override !== undefined && seen.query.get("watch") !== "true") override(seen, answer);
  else if (seen.path === "/apis") {
    const name = "gateway.networking.k8s.io";
    answer.json({ groups: [{ name, versions: [{ version: "v1alpha2" }, { version }] }] });
  } else if (seen.path === `${GROUP}/${version}`) {
    const kinds = ["GatewayClass", "Gateway", "HTTPRoute", "ReferenceGrant"];
    answer.json({ resources: kinds.map((kind) => ({ name: `${kind.toLowerCase()}s`, kind })) });
  } else if (seen.path === `${GROUP}/v1alpha2`) {
    const kinds = ["TCPRoute", "HTTPRoute"];
    answer.json({ resources: kinds.map((kind) => ({ name: `${kind.toLowerCase()}s`, kind })) });
  } else if (seen.query.get("watch") === "true") {
    answer.events();
    watches.get(seen.path)?.(answer);
  } else answer.json({ metadata: { resourceVersion: "1" }, items: [] });
}

function list(path: string, ...items: readonly unknown[]): void {
  overrides.set(path, (_seen, answer) => answer.json({ metadata: { resourceVersion: "5" }, items }));
}

function start(skipForbidden = false): void {
  const abort = new AbortController();
  const source = new KubernetesSource({
    client: double.client(),
    controllerName: OURS,
    skipForbidden,
    observer: { log: (_level, message) => logged.push(message) },
    timing: { firstBackoffMs: 1, mostBackoffMs: 5 },
  });
  const running = source.run((changes) => batches.push(changes), abort.signal);
  stop = async () => {
    abort.abort();
    await running;
  };
}

function asked(path: string): boolean {
  return double.requests.some((request) => request.path === path);
}

beforeEach(async () => {
  overrides = new Map();
  watches = new Map();
  version = "v1";
  batches = [];
  logged = [];
  double = await ServerDouble.start(serve);
});

afterEach(async () => {
  await stop();
  await double.stop();
});

const CLASS = { metadata: { name: "ours", resourceVersion: "2" }, spec: { controllerName: OURS } };
const GATEWAY = {
  metadata: { name: "gw", namespace: "infra", resourceVersion: "3" },
  spec: {
    gatewayClassName: "ours",
    listeners: [
      { name: "https", port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "cert" }] } },
    ],
  },
};

describe("the source against a server that misbehaves", () => {
  test("an empty cluster is one empty batch", async () => {
    start();
    await eventually(() => expect(batches).toEqual([[]]));
  });

  test("policies are read once their CRDs are installed", async () => {
    const own = "/apis/mergeway.dev";
    const policy = (overrides: object): object => ({
      metadata: { name: "base", namespace: "infra", resourceVersion: "2" },
      spec: { targetRefs: [{ kind: "Gateway", name: "gw" }], overrides },
    });
    list(`${own}/v1alpha1/trafficpolicies`, policy({ rateLimits: [{ requests: 5 }] }));
    list(`${own}/v1alpha1/clientpolicies`, policy({ clientAddress: { proxyProtocol: "Required" } }));
    const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let news: Answer | undefined;
    watches.set(crds, (answer) => {
      news = answer;
    });
    start();
    await eventually(() => expect(batches).toEqual([[]]));
    await eventually(() => expect(news).toBeDefined());
    expect(asked(`${own}/v1alpha1/trafficpolicies`)).toBe(false);
    overrides.set("/apis", (_seen, answer) =>
      answer.json({ groups: [{ name: "mergeway.dev", versions: [{ version: "v1alpha1" }] }] }),
    );
    overrides.set(`${own}/v1alpha1`, (_seen, answer) =>
      answer.json({
        resources: [
          { name: "trafficpolicies", kind: "TrafficPolicy" },
          { name: "clientpolicies", kind: "ClientPolicy" },
        ],
      }),
    );
    news?.events({
      type: "ADDED",
      object: { metadata: { name: "trafficpolicies.mergeway.dev", resourceVersion: "9" } },
    });
    await eventually(() =>
      expect(batches.flat().map(({ key }) => key)).toEqual(
        expect.arrayContaining(["TrafficPolicy/infra/base", "ClientPolicy/infra/base"]),
      ),
    );
    const traffic = batches.flat().find(({ key }) => key === "TrafficPolicy/infra/base")?.resource;
    expect(traffic?.kind === "TrafficPolicy" && traffic.spec.overrides?.rateLimits).toEqual([
      { requests: 5, period: "1s", per: "All" },
    ]);
  });

  test("a policy that a newer version makes unreadable holds on until it is deleted", async () => {
    const own = "/apis/mergeway.dev/v1alpha1";
    const policy = (resourceVersion: string, rateLimits: unknown): object => ({
      metadata: { name: "base", namespace: "infra", uid: "u", resourceVersion },
      spec: { targetRefs: [{ kind: "Gateway", name: "gw" }], overrides: { rateLimits } },
    });
    overrides.set("/apis", (_seen, answer) =>
      answer.json({ groups: [{ name: "mergeway.dev", versions: [{ version: "v1alpha1" }] }] }),
    );
    overrides.set(own, (_seen, answer) =>
      answer.json({ resources: [{ name: "trafficpolicies", kind: "TrafficPolicy" }] }),
    );
    list(`${own}/trafficpolicies`, policy("2", [{ requests: 5 }]));
    let news: Answer | undefined;
    watches.set(`${own}/trafficpolicies`, (answer) => {
      news = answer;
    });
    start();
    await eventually(() => expect(news).toBeDefined());
    const heard = (): unknown[] =>
      batches.flat().flatMap(({ key, resource }) => {
        if (key !== "TrafficPolicy/infra/base") return [];
        return [resource?.kind === "TrafficPolicy" ? resource.spec : undefined];
      });
    const good = expect.objectContaining({
      overrides: { rateLimits: [expect.objectContaining({ requests: 5 })] },
    });
    await eventually(() => expect(heard()).toEqual([good]));
    news?.events({ type: "MODIFIED", object: policy("6", "few") });
    await eventually(() => expect(heard()).toEqual([good, good]));
    expect(logged.join("\n")).toContain(
      "TrafficPolicy/infra/base is not shaped as expected: the last version that could be read holds",
    );
    news?.events({ type: "DELETED", object: policy("7", "few") });
    await eventually(() => expect(heard()).toEqual([good, good, undefined]));
    news?.events({ type: "ADDED", object: policy("8", "few") });
    const closed = expect.objectContaining({
      unreadable: expect.stringContaining("spec.overrides.rateLimits"),
    });
    await eventually(() => expect(heard()).toEqual([good, good, undefined, closed]));
  });

  test("nothing is said before the slowest list has come", async () => {
    let finish: (() => void) | undefined;
    overrides.set("/api/v1/services", (_seen, answer) => {
      finish = () => answer.json({ metadata: { resourceVersion: "1" }, items: [] });
    });
    list(`${GROUP}/v1/gatewayclasses`, CLASS);
    start();
    await eventually(() => expect(asked("/apis/discovery.k8s.io/v1/endpointslices")).toBe(true));
    await eventually(() => expect(finish).toBeDefined());
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(batches).toEqual([]);
    finish?.();
    await eventually(() =>
      expect(batches.map((batch) => batch.map(({ key }) => key))).toEqual([["GatewayClass//ours"]]),
    );
  });

  test("a right that is missing holds everything back and is named", async () => {
    overrides.set("/api/v1/namespaces", (_seen, answer) => answer.refuse(403, "Forbidden"));
    start();
    await eventually(() =>
      expect(logged.join("\n")).toContain("not permitted to list and watch: GET /api/v1/namespaces"),
    );
    expect(batches).toEqual([]);
    overrides.clear();
    await eventually(() => expect(batches).toHaveLength(1));
  });

  test("a person's look at a cluster leaves out what the person may not read", async () => {
    for (const path of ["/api/v1/secrets", "/api/v1/services"]) {
      overrides.set(path, (_seen, answer) => answer.refuse(403, "Forbidden"));
    }
    list(`${GROUP}/v1/gatewayclasses`, CLASS);
    start(true);
    await eventually(() => expect(batches[0]?.map(({ key }) => key)).toEqual(["GatewayClass//ours"]));
  });

  test("a Secret that cannot be read for a while holds the first batch back", async () => {
    const path = "/api/v1/namespaces/infra/secrets/cert";
    list(`${GROUP}/v1/gatewayclasses`, CLASS);
    list(`${GROUP}/v1/gateways`, GATEWAY);
    let failures = 0;
    overrides.set(path, (_seen, answer) => {
      if (failures++ < 2) answer.refuse(500, "InternalError");
      else
        answer.json({
          metadata: { name: "cert", namespace: "infra", resourceVersion: "4" },
          type: "Opaque",
          data: {},
        });
    });
    start();
    await eventually(() => expect(batches).toHaveLength(1));
    expect(batches[0]?.map(({ key }) => key).sort()).toEqual([
      "Gateway/infra/gw",
      "GatewayClass//ours",
      "Secret/infra/cert",
    ]);
    expect(failures).toBe(3);
  });

  test("a Secret that may not be read is as good as absent", async () => {
    list(`${GROUP}/v1/gatewayclasses`, CLASS);
    list(`${GROUP}/v1/gateways`, GATEWAY);
    overrides.set("/api/v1/namespaces/infra/secrets/cert", (_seen, answer) =>
      answer.refuse(403, "Forbidden"),
    );
    start();
    await eventually(() => expect(batches).toHaveLength(1));
    expect(batches[0]?.map(({ key }) => key).sort()).toEqual(["Gateway/infra/gw", "GatewayClass//ours"]);
  });

  test.each([false, true])(
    "a Secret of another namespace is read only with a grant: %s",
    async (isGranted) => {
      const path = "/api/v1/namespaces/team/secrets/cert";
      const reference = { name: "cert", namespace: "team" };
      const listener = { ...GATEWAY.spec.listeners[0], tls: { certificateRefs: [reference] } };
      const from = [{ group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "infra" }];
      const spec = { from, to: [{ group: "", kind: "Secret" }] };
      const grant = { metadata: { name: "grant", namespace: "team", resourceVersion: "2" }, spec };
      list(`${GROUP}/v1/gatewayclasses`, CLASS);
      list(`${GROUP}/v1/gateways`, { ...GATEWAY, spec: { ...GATEWAY.spec, listeners: [listener] } });
      list(`${GROUP}/v1/referencegrants`, ...(isGranted ? [grant] : []));
      overrides.set(path, (_seen, answer) =>
        answer.json({ metadata: { ...reference, resourceVersion: "4" } }),
      );
      start();
      await eventually(() => expect(batches).toHaveLength(1));
      expect(asked(path)).toBe(isGranted);
      expect(batches[0]?.some(({ key }) => key === "Secret/team/cert")).toBe(isGranted);
    },
  );

  test("CRDs that may not be read are no obstacle", async () => {
    overrides.set("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", (_seen, answer) =>
      answer.refuse(403, "Forbidden"),
    );
    start();
    await eventually(() => expect(batches).toHaveLength(1));
    expect(logged.join("\n")).toContain("found by polling");
  });

  test("each kind is read in the newest version that is served", async () => {
    version = "v1beta1";
    start();
    await eventually(() => expect(batches).toHaveLength(1));
    expect(asked(`${GROUP}/v1beta1/httproutes`)).toBe(true);
    expect(asked(`${GROUP}/v1alpha2/httproutes`)).toBe(false);
    expect(asked(`${GROUP}/v1alpha2/tcproutes`)).toBe(true);
    expect(asked(`${GROUP}/v1/listenersets`)).toBe(false);
  });
});

describe("order of versions", () => {
  test("stable, then beta, then alpha, higher numbers first", () => {
    stop = () => Promise.resolve();
    const versions = ["v1alpha2", "v1", "foo", "v1beta1", "v2", "v1alpha10", "v1beta2"];
    expect(
      versions
        .map((each) => ({ version: each }))
        .sort(newestFirst)
        .map((each) => each.version),
    ).toEqual(["v2", "v1", "v1beta2", "v1beta1", "v1alpha10", "v1alpha2", "foo"]);
  });
});

describe("shapes", () => {
  beforeEach(() => {
    stop = () => Promise.resolve();
  });

  test("defaults are filled in, unknown fields and large annotations are not kept, statuses are kept whole", () => {
    const shaped = shaperOf(
      "HTTPRoute",
      "gateway.networking.k8s.io/v1",
    )({
      metadata: {
        name: "r",
        namespace: "n",
        managedFields: [{ manager: "x" }],
        annotations: {
          "kubectl.kubernetes.io/last-applied-configuration": "{}",
          "mergeway.dev/kept": "yes",
        },
      },
      spec: {
        parentRefs: [{ name: "gw" }],
        fromTheFuture: 1,
        rules: [{ backendRefs: [{ name: "b", port: 80 }] }],
      },
      status: { parents: [], fromTheFuture: { kept: true } },
    });
    expect(shaped).toEqual({
      resource: {
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "HTTPRoute",
        metadata: { name: "r", namespace: "n", annotations: { "mergeway.dev/kept": "yes" } },
        spec: {
          parentRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" }],
          rules: [
            {
              backendRefs: [{ group: "", kind: "Service", name: "b", port: 80, weight: 1 }],
              matches: [{ path: { type: "PathPrefix", value: "/" } }],
            },
          ],
        },
        status: { parents: [], fromTheFuture: { kept: true } },
      },
    });
  });

  test("what an older or newer CRD limits differently is taken, what cannot be read is not", () => {
    const gateway = shaperOf("Gateway", "gateway.networking.k8s.io/v1");
    const listener = (name: string): unknown => ({
      name,
      port: 80,
      protocol: "HTTP",
      hostname: "NOT_A.HOST",
    });
    const many = Array.from({ length: 100 }, (_, index) => listener(`l${index}`));
    const metadata = { name: "g", namespace: "n" };
    expect(gateway({ metadata, spec: { gatewayClassName: "c", listeners: many } })).toHaveProperty(
      "resource",
    );
    for (const spec of [
      { gatewayClassName: "c", listeners: "none" },
      { listeners: [] },
      { gatewayClassName: "c", listeners: [{ name: "a", port: "80", protocol: "HTTP" }] },
      "spec",
      null,
      undefined,
    ]) {
      expect(gateway({ metadata, spec }), JSON.stringify(spec)).toHaveProperty("problem");
    }
    expect(
      gateway({ metadata, spec: { gatewayClassName: "c", listeners: [] }, status: { listeners: 7 } }),
    ).toHaveProperty("problem");
  });

  test("of core kinds only what is read is kept", () => {
    expect(
      shaperOf(
        "Service",
        "v1",
      )({
        metadata: { name: "s", namespace: "n", labels: { a: "b" } },
        spec: {
          clusterIP: "10.0.0.1",
          sessionAffinity: "None",
          ports: [{ port: 80, targetPort: "web", nodePort: 30000 }],
        },
        status: { loadBalancer: {} },
      }),
    ).toEqual({
      resource: {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "s", namespace: "n" },
        spec: {
          type: "ClusterIP",
          clusterIP: "10.0.0.1",
          ports: [{ port: 80, protocol: "TCP", targetPort: "web" }],
        },
        status: { loadBalancer: {} },
      },
    });
  });

  test("a Service that was made for a Gateway is known again", () => {
    const labels = { "app.kubernetes.io/managed-by": "mergeway" };
    const annotations = { "mergeway.dev/gateway-name": "gw" };
    const metadata = { name: "s", namespace: "n", labels: { ...labels, a: "b" }, annotations };
    expect(shaperOf("Service", "v1")({ metadata, spec: {} })).toMatchObject({
      resource: { metadata: { name: "s", namespace: "n", labels, annotations } },
    });
  });
});
