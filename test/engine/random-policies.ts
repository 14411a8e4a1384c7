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
  },
  { requiredKeys: [] },
);

export function trafficPolicySpec(namespace: string): fc.Arbitrary<object> {
  return fc.record(
    { targetRefs: targetsIn(namespace), defaults: trafficSettings, overrides: trafficSettings },
    { requiredKeys: ["targetRefs"] },
  );
}

const clientSettings = fc.record({
  clientAddress: fc.record({
    forwardedFor: fc.oneof(
      fc.record({ trustedHops: fc.constantFrom(1, 2) }),
      fc.record({ trustedNetworks: fc.array(fc.constantFrom(...NETWORKS), { minLength: 1, maxLength: 2 }) }),
    ),
  }),
});

export function clientPolicySpec(namespace: string): fc.Arbitrary<object> {
  return fc
    .record({ targetRefs: targetsIn(namespace), defaults: clientSettings })
    .map(({ targetRefs, defaults }) => ({
      targetRefs: targetRefs.filter((target) => !("kind" in target && String(target.kind).endsWith("Route"))),
      defaults,
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
    quota: fc.constantFrom(undefined, { listeners: 1 }, { listeners: 2 }),
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
  });
}
