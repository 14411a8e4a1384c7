/** Random specs of policies whose targets are among the random resources, mostly. */
import * as fc from "fast-check";
import { EXPERIMENTAL_GROUP, GATEWAY_GROUP } from "../../src/api/resource.ts";

const NETWORKS = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"] as const;

function targetsIn(namespace: string): fc.Arbitrary<readonly object[]> {
  const gateway = fc.record(
    { kind: fc.constant("Gateway"), name: fc.constantFrom("gw-main", "gw-main", "gw-side", "gw-gone") },
    { requiredKeys: ["kind", "name"] },
  );
  const set = fc.record({
    kind: fc.constantFrom("ListenerSet", "ListenerSet", "XListenerSet"),
    name: fc.constantFrom(`ls-${namespace.slice(3)}one`, `ls-${namespace.slice(3)}two`),
  });
  const route = fc.record({
    kind: fc.constantFrom("HTTPRoute", "HTTPRoute", "GRPCRoute", "TLSRoute"),
    name: fc.constantFrom("rt-one", "rt-two"),
  });
  const owner = namespace === "ns-plat" ? gateway : set;
  const target = fc
    .oneof({ weight: 3, arbitrary: owner }, { weight: 2, arbitrary: route })
    .chain(({ kind, name }) => {
      const isRoute = kind.endsWith("Route");
      const sections = isRoute ? ["rule-first"] : [`sect-${name.slice(3)}x`, `sect-${name.slice(3)}y`];
      return fc.constantFrom(undefined, undefined, ...sections).map((sectionName) => ({
        group: kind === "XListenerSet" ? EXPERIMENTAL_GROUP : GATEWAY_GROUP,
        kind,
        name: isRoute ? `${name}${kind.toLowerCase()}` : name,
        ...(sectionName === undefined ? {} : { sectionName }),
      }));
    });
  return fc.array(target, { minLength: 1, maxLength: 2 });
}

const rateLimit = fc.record({
  requests: fc.constantFrom(1, 100),
  period: fc.constantFrom("1s", "1m"),
  per: fc.constantFrom("All", "ClientAddress"),
});

const trafficSettings = fc.record(
  {
    clientAddresses: fc.record({
      allow: fc.array(fc.constantFrom(...NETWORKS, ...NETWORKS, "1:2:3"), { maxLength: 2 }),
    }),
    rateLimits: fc.array(rateLimit, { minLength: 1, maxLength: 2 }),
    responseHeaders: fc.record({
      set: fc.constantFrom("one", "two").map((value) => [{ name: "X-Policy", value }]),
    }),
    httpsRedirect: fc.record({
      enabled: fc.constantFrom(true, true, false),
      statusCode: fc.constantFrom(301, 308),
    }),
    cors: fc.record({ allowOrigins: fc.constantFrom([], ["*"], ["https://app.example"]) }),
    compression: fc.record({
      enabled: fc.constantFrom(true, true, false),
      minBytes: fc.constantFrom(0, 1_000, 2_000),
    }),
    directResponse: fc.record({
      enabled: fc.constantFrom(true, false, false, false),
      body: fc.constantFrom("one", "two").map((inline) => ({ inline })),
    }),
    retries: fc.record({ attempts: fc.constantFrom(0, 1, 3) }),
    timeouts: fc.record(
      {
        request: fc.constantFrom("1ms", "5s", "20s", "48h"),
        backendRequest: fc.constantFrom("1s", "10s"),
        idle: fc.constantFrom("30s", "1m30s"),
      },
      { requiredKeys: [] },
    ),
    requestBody: fc.record({ maxSize: fc.constantFrom(0, 1_000, "1k", "10Mi", "9999Gi") }),
  },
  { requiredKeys: [] },
);

export function trafficPolicySpec(namespace: string): fc.Arbitrary<object> {
  return fc.record(
    { targetRefs: targetsIn(namespace), defaults: trafficSettings, overrides: trafficSettings },
    { requiredKeys: ["targetRefs"] },
  );
}

const clientSettings = fc.record(
  {
    clientAddress: fc.record({
      forwardedFor: fc.oneof(
        fc.record({ trustedHops: fc.constantFrom(1, 2) }),
        fc.record({
          trustedNetworks: fc.array(fc.constantFrom(...NETWORKS), { minLength: 1, maxLength: 2 }),
        }),
      ),
    }),
    headerLimits: fc.record({ maxSize: fc.constantFrom("8Ki", "999Ki") }),
    connections: fc.record({ idleTimeout: fc.constantFrom("5s", "48h") }),
  },
  { requiredKeys: [] },
);

export function clientPolicySpec(namespace: string): fc.Arbitrary<object> {
  return fc
    .record({ targetRefs: targetsIn(namespace), defaults: clientSettings, overrides: clientSettings })
    .map(({ targetRefs, defaults, overrides }) => ({
      targetRefs: targetRefs.filter((target) => !("kind" in target && String(target.kind).endsWith("Route"))),
      defaults,
      overrides,
    }));
}

const PATTERNS = ["host-one.test", "*.host-one.test", "host-two.test", "*.test", "*"] as const;

const tenantRule = fc
  .record({
    namespaceSelector: fc.constantFrom({}, { matchLabels: { team: "red" } }),
    allow: fc.array(fc.constantFrom(...PATTERNS, "{namespace}.test"), { maxLength: 3 }),
    deny: fc.constantFrom(undefined, undefined, ["sub.host-one.test"]),
    ports: fc.constantFrom(undefined, undefined, [{ port: 80 }], [{ port: 400, endPort: 500 }]),
    protocols: fc.constantFrom(undefined, undefined, ["HTTP", "TCP"]),
    routeKinds: fc.constantFrom(undefined, undefined, ["HTTPRoute", "TLSRoute"]),
    quota: fc.constantFrom(
      undefined,
      { listeners: 1 },
      { listeners: 2 },
      { hostnames: 1, ports: 2 },
      { wildcards: 0, routes: 1 },
      { listeners: 3, certificates: 0, rules: 2 },
    ),
  })
  .map(({ namespaceSelector, allow, deny, ...more }) => ({
    namespaceSelector,
    hostnames: { allow, ...(deny === undefined ? {} : { deny }) },
    ...Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)),
  }));

export function tenantPolicySpec(_namespace: string): fc.Arbitrary<object> {
  return fc.record({
    targetRefs: fc.constant([{ group: GATEWAY_GROUP, kind: "Gateway", name: "gw-main" }]),
    enforcement: fc.constantFrom("Enforce", "Enforce", "Enforce", "Audit"),
    unmatchedNamespaces: fc.constantFrom("Deny", "Allow", "Allow"),
    reservedHostnames: fc.constantFrom([], [], ["host-two.test"]),
    rules: fc.array(tenantRule, { maxLength: 2 }),
    claims: fc.constantFrom("Hold", "Hold", undefined),
  });
}

const backendSettings = fc.record(
  {
    loadBalancing: fc.oneof(
      fc.record({ type: fc.constantFrom("RoundRobin", "LeastRequest", "Random", "Unknown") }),
      fc
        .constantFrom("X-User", "bad name")
        .map((header) => ({ type: "ConsistentHash", consistentHash: { key: "Header", header } })),
    ),
    sessionPersistence: fc
      .constantFrom("one", "two", "odd;name")
      .map((name) => ({ type: "Cookie", cookie: { name, lifetimeType: "Session" } })),
    limits: fc.record(
      {
        connections: fc.constantFrom(1, 10, 100),
        pendingRequests: fc.constantFrom(5, 50),
        requests: fc.constantFrom(7, 70, 0, 2 ** 53),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

export function backendPolicySpec(namespace: string): fc.Arbitrary<object> {
  const service = fc
    .record({ name: fc.constantFrom("svc-good", "svc-good", "svc-gone"), port: fc.constantFrom("", "http") })
    .map(({ name, port }) => [
      { group: "", kind: "Service", name, ...(port === "" ? {} : { sectionName: port }) },
    ]);
  return fc.record(
    {
      targetRefs: fc.oneof(targetsIn(namespace), service, service),
      defaults: backendSettings,
      overrides: backendSettings,
    },
    { requiredKeys: ["targetRefs"] },
  );
}
