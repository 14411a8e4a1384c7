/**
 * Random resources from small universes of names, so that conflicts, grants and attachments happen
 * often. They are what admission would hand on: valid and defaulted. Every name is a token of the
 * form `word-word` that occurs nowhere else, so that a leak into a message can be seen.
 */
import * as fc from "fast-check";
import type { Listener } from "../../src/api/gateway.ts";
import { type Key, keyOf } from "../../src/api/key.ts";
import { EXPERIMENTAL_GROUP, GATEWAY_GROUP, GROUP_OF_KIND, type Resource } from "../../src/api/resource.ts";
import {
  backendPolicySpec,
  clientPolicySpec,
  tenantPolicySpec,
  trafficPolicySpec,
} from "./random-policies.ts";

export interface Change {
  readonly key: Key;
  readonly resource: Resource | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

const NAMESPACES = ["ns-plat", "ns-ant", "ns-bee"] as const;
const TENANTS = ["ns-ant", "ns-bee"] as const;
const HOSTNAMES = [
  "host-one.test",
  "host-two.test",
  "*.host-one.test",
  "sub.host-one.test",
  undefined,
] as const;
const TIMES = [undefined, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"] as const;
/** Gateways may be roots or, by attachTo, children. */
const GATEWAYS = ["gw-main", "gw-side", "gw-kid"] as const;

/** Drops absent fields, as JSON would. */
function compact<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

function metadata(namespace: string | undefined, name: string, more: Fields = {}): Fields {
  return compact({ name, namespace, ...more });
}

function object(kind: Resource["kind"], fields: Fields): Resource {
  const group = GROUP_OF_KIND[kind];
  return { apiVersion: group === "" ? "v1" : `${group}/v1`, kind, ...fields } as unknown as Resource;
}

const selection = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ from: "All" }) },
  { weight: 2, arbitrary: fc.constant({ from: "Same" }) },
  fc.constant({ from: "Selector", selector: { matchLabels: { team: "red" } } }),
);

const certificateRef = fc.record({
  group: fc.constant(""),
  kind: fc.constant("Secret"),
  name: fc.constantFrom("sec-good", "sec-good", "sec-good", "sec-gone"),
  namespace: fc.constantFrom(...Array<undefined>(4).fill(undefined), ...TENANTS),
});

function listener(section: string, portless: boolean): fc.Arbitrary<Listener> {
  return fc
    .record({
      socket: fc.oneof(
        { weight: 8, arbitrary: fc.constant(["HTTP", 80] as const) },
        { weight: 5, arbitrary: fc.constant(["HTTPS", 443] as const) },
        { weight: 2, arbitrary: fc.constant(["TLS", 443] as const) },
        fc.constantFrom(
          ["TCP", 80] as const,
          ["TCP", 8080] as const,
          ["UDP", 80] as const,
          ["HTTP", 443] as const,
        ),
      ),
      hostname: fc.constantFrom(...HOSTNAMES),
      withoutPort: portless ? fc.constantFrom(false, false, true) : fc.constant(false),
      certificateRefs: fc.array(certificateRef, { minLength: 1, maxLength: 2 }),
      allowed: selection,
      kinds: fc.constantFrom(undefined, undefined, undefined, [{ group: GATEWAY_GROUP, kind: "GRPCRoute" }]),
    })
    .map(({ socket: [protocol, port], hostname, withoutPort, certificateRefs, allowed, kinds }) => {
      const named = protocol !== "TCP" && protocol !== "UDP";
      const tls =
        protocol === "HTTPS"
          ? { mode: "Terminate", certificateRefs: certificateRefs.map(compact) }
          : protocol === "TLS"
            ? { mode: "Passthrough" }
            : undefined;
      const allowedRoutes = compact({ namespaces: allowed, kinds });
      return compact({
        name: section,
        port: withoutPort ? undefined : port,
        protocol,
        hostname: named ? hostname : undefined,
        tls,
        allowedRoutes,
      }) as unknown as Listener;
    });
}

function listeners(owner: string, portless = false): fc.Arbitrary<readonly Listener[]> {
  return fc
    .tuple(
      ...["x", "y", "z"].map((place) =>
        fc.option(listener(`sect-${owner.slice(3)}${place}`, portless), { nil: undefined, freq: 2 }),
      ),
    )
    .map((list) => list.filter((one) => one !== undefined));
}

const gateway = fc.constantFrom(...GATEWAYS).chain((name) =>
  fc
    .record({
      className: fc.constantFrom(...Array<string>(9).fill("mergeway"), "other"),
      allowed: fc.option(selection, { nil: undefined, freq: 8 }),
      listeners: listeners(name),
      badAddress: fc.constantFrom(...Array<boolean>(9).fill(false), true),
      children: fc.constantFrom(undefined, { namespaces: { from: "All" } }),
      attachTo: fc.constantFrom(...Array<undefined>(9).fill(undefined), ...GATEWAYS),
      authorities: fc.constantFrom(...Array<undefined>(9).fill(undefined), "cm-good", "cm-gone"),
    })
    .map(({ className, allowed, listeners: own, badAddress, children, attachTo, authorities }) => {
      const parent = attachTo === undefined || attachTo === name ? undefined : attachTo;
      const infrastructure = compact({
        allowedChildren: parent === undefined ? children : undefined,
        attachTo: parent && { group: GATEWAY_GROUP, kind: "Gateway", name: parent, namespace: "ns-plat" },
      });
      const validation = {
        caCertificateRefs: [{ group: "", kind: "ConfigMap", name: authorities }],
        mode: "AllowValidOnly",
      };
      const spec = compact({
        gatewayClassName: className,
        allowedListeners: allowed && { namespaces: allowed },
        listeners: own,
        addresses: badAddress ? [{ type: "example.com/odd", value: "one" }] : undefined,
        infrastructure: Object.keys(infrastructure).length === 0 ? undefined : infrastructure,
        tls: authorities && { frontend: { default: { validation } } },
      });
      return object("Gateway", { metadata: metadata("ns-plat", name), spec });
    }),
);

function set(kind: "ListenerSet" | "XListenerSet"): fc.Arbitrary<Resource> {
  return fc
    .record({ namespace: fc.constantFrom(...TENANTS), place: fc.constantFrom("one", "two") })
    .chain(({ namespace, place }) => {
      // The same name in both kinds: they must never be taken for each other.
      const name = `ls-${namespace.slice(3)}${place}`;
      return fc
        .record({
          parent: fc.constantFrom(...Array<string>(6).fill("gw-main"), "gw-side", "gw-kid"),
          creationTimestamp: fc.constantFrom(...TIMES),
          listeners: listeners(name, kind === "XListenerSet"),
        })
        .map(({ parent, creationTimestamp, listeners: own }) =>
          object(kind, {
            metadata: metadata(namespace, name, { creationTimestamp }),
            spec: {
              parentRef: { group: GATEWAY_GROUP, kind: "Gateway", name: parent, namespace: "ns-plat" },
              listeners: own,
            },
          }),
        );
    });
}

const parentRef = fc.oneof(
  fc
    .record({
      name: fc.constantFrom(...GATEWAYS),
      sectionName: fc.constantFrom(undefined, undefined, "sect-mainx"),
    })
    .map(({ name, sectionName }) =>
      compact({ group: GATEWAY_GROUP, kind: "Gateway", namespace: "ns-plat", name, sectionName }),
    ),
  fc
    .record({
      kind: fc.constantFrom("ListenerSet", "ListenerSet", "XListenerSet"),
      namespace: fc.constantFrom(...TENANTS),
      place: fc.constantFrom("one", "two"),
      port: fc.constantFrom(...Array<undefined>(4).fill(undefined), 80),
    })
    .map(({ kind, namespace, place, port }) =>
      compact({
        group: kind === "ListenerSet" ? GATEWAY_GROUP : EXPERIMENTAL_GROUP,
        kind,
        namespace,
        name: `ls-${namespace.slice(3)}${place}`,
        port,
      }),
    ),
);

const backendRef = fc
  .record({
    name: fc.constantFrom("svc-good", "svc-gone"),
    namespace: fc.constantFrom(undefined, undefined, ...TENANTS),
    weight: fc.constantFrom(1, 3),
  })
  .map(({ name, namespace, weight }) =>
    compact({ group: "", kind: "Service", name, namespace, port: 8080, weight }),
  );

const PATHS = [
  { type: "PathPrefix", value: "/" },
  { type: "PathPrefix", value: "/a" },
  { type: "Exact", value: "/a" },
  { type: "RegularExpression", value: "(" },
] as const;

const route = fc
  .record({
    kind: fc.constantFrom(
      "HTTPRoute",
      "HTTPRoute",
      "HTTPRoute",
      "GRPCRoute",
      "TLSRoute",
      "TCPRoute",
      "UDPRoute",
    ),
    namespace: fc.constantFrom(...NAMESPACES),
    name: fc.constantFrom("rt-one", "rt-two"),
    creationTimestamp: fc.constantFrom(...TIMES),
    parentRefs: fc.array(parentRef, { minLength: 1, maxLength: 3 }),
    hostnames: fc.array(fc.constantFrom("host-one.test", "*.host-one.test", "host-two.test"), {
      maxLength: 2,
    }),
    rules: fc.array(
      fc.record({
        path: fc.constantFrom(...PATHS),
        backendRefs: fc.array(backendRef, { maxLength: 2 }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  })
  .map(({ kind, namespace, name, creationTimestamp, parentRefs, hostnames, rules }) => {
    const named = kind !== "TCPRoute" && kind !== "UDPRoute";
    return object(kind as Resource["kind"], {
      metadata: metadata(namespace, `${name}${kind.toLowerCase()}`, { creationTimestamp }),
      spec: compact({
        parentRefs,
        hostnames: named && hostnames.length > 0 ? hostnames : undefined,
        rules: rules.map(({ path, backendRefs }, place) =>
          kind === "HTTPRoute"
            ? { ...(place === 0 ? { name: "rule-first" } : {}), matches: [{ path }], backendRefs }
            : { backendRefs },
        ),
      }),
    });
  });

const grant = fc
  .record({
    namespace: fc.constantFrom(...TENANTS),
    kind: fc.constantFrom("Gateway", "ListenerSet", "XListenerSet", "HTTPRoute"),
    from: fc.constantFrom(...NAMESPACES),
    to: fc.constantFrom("Secret", "Service"),
    name: fc.constantFrom(undefined, "sec-good"),
  })
  .map(({ namespace, kind, from, to, name }) =>
    object("ReferenceGrant", {
      metadata: metadata(namespace, "rg-one"),
      spec: {
        from: [{ group: GROUP_OF_KIND[kind as Resource["kind"]], kind, namespace: from }],
        to: [compact({ group: "", kind: to, name })],
      },
    }),
  );

const policy = fc
  .record({
    namespace: fc.constantFrom(...TENANTS),
    name: fc.constantFrom("tls-one", "tls-two"),
    creationTimestamp: fc.constantFrom(...TIMES),
    authority: fc.constantFrom("cm-good", "cm-gone"),
  })
  .map(({ namespace, name, creationTimestamp, authority }) =>
    object("BackendTLSPolicy", {
      metadata: metadata(namespace, name, { creationTimestamp }),
      spec: {
        targetRefs: [{ group: "", kind: "Service", name: "svc-good" }],
        validation: {
          hostname: "backend.test",
          caCertificateRefs: [{ group: "", kind: "ConfigMap", name: authority }],
        },
      },
    }),
  );

export function attachedPolicy(
  kind: "TrafficPolicy" | "ClientPolicy" | "BackendPolicy" | "TenantPolicy",
  specIn: (namespace: string) => fc.Arbitrary<object>,
): fc.Arbitrary<Resource> {
  return fc.constantFrom(...NAMESPACES).chain((home) =>
    fc
      .record({
        name: fc.constantFrom("pol-one", "pol-two", "pol-three"),
        creationTimestamp: fc.constantFrom(...TIMES),
        spec: specIn(home),
      })
      .map(({ name, creationTimestamp, spec }) =>
        object(kind, { metadata: metadata(home, name, { creationTimestamp }), spec }),
      ),
  );
}

const namespace = fc
  .record({ name: fc.constantFrom(...NAMESPACES), team: fc.constantFrom("red", "blue") })
  .map(({ name, team }) =>
    object("Namespace", { metadata: metadata(undefined, name, { labels: { team } }) }),
  );

const service = fc
  .record({ namespace: fc.constantFrom(...NAMESPACES), port: fc.constantFrom(8080, 8080, 9090) })
  .map(({ namespace: home, port }) =>
    object("Service", { metadata: metadata(home, "svc-good"), spec: { ports: [{ port }] } }),
  );

const slice = fc
  .record({ namespace: fc.constantFrom(...NAMESPACES), address: fc.constantFrom("10.0.0.1", "10.0.0.2") })
  .map(({ namespace: home, address }) =>
    object("EndpointSlice", {
      metadata: metadata(home, "es-one", { labels: { "kubernetes.io/service-name": "svc-good" } }),
      addressType: "IPv4",
      ports: [{ port: 9000 }],
      endpoints: [{ addresses: [address] }],
    }),
  );

const secret = fc
  .record({
    namespace: fc.constantFrom(...NAMESPACES),
    certificate: fc.constantFrom("pair-one", "pair-one", "pair-two", "broken"),
  })
  .map(({ namespace: home, certificate }) =>
    object("Secret", {
      metadata: metadata(home, "sec-good"),
      type: "kubernetes.io/tls",
      data: { "tls.crt": certificate, "tls.key": "key" },
    }),
  );

const configMap = fc
  .record({ namespace: fc.constantFrom(...NAMESPACES), bundle: fc.constantFrom("authority", "broken") })
  .map(({ namespace: home, bundle }) =>
    object("ConfigMap", { metadata: metadata(home, "cm-good"), data: { "ca.crt": bundle } }),
  );

const gatewayClass = fc
  .constantFrom(...Array<string>(4).fill("mergeway.dev/controller"), "example.com/controller")
  .map((controllerName) =>
    object("GatewayClass", { metadata: metadata(undefined, "mergeway"), spec: { controllerName } }),
  );

const resource: fc.Arbitrary<Resource> = fc.oneof(
  { weight: 4, arbitrary: gateway },
  { weight: 18, arbitrary: set("ListenerSet") },
  { weight: 8, arbitrary: set("XListenerSet") },
  { weight: 18, arbitrary: route },
  { weight: 3, arbitrary: grant },
  { weight: 2, arbitrary: policy },
  { weight: 8, arbitrary: attachedPolicy("TrafficPolicy", trafficPolicySpec) },
  { weight: 2, arbitrary: attachedPolicy("ClientPolicy", clientPolicySpec) },
  { weight: 1, arbitrary: attachedPolicy("BackendPolicy", backendPolicySpec) },
  { weight: 1, arbitrary: attachedPolicy("TenantPolicy", tenantPolicySpec) },
  { weight: 2, arbitrary: namespace },
  { weight: 3, arbitrary: service },
  { weight: 2, arbitrary: slice },
  { weight: 4, arbitrary: secret },
  { weight: 2, arbitrary: configMap },
  { weight: 1, arbitrary: gatewayClass },
);

export const change: fc.Arbitrary<Change> = fc
  .record({ resource, deleted: fc.constantFrom(...Array<boolean>(5).fill(false), true) })
  .map(({ resource: one, deleted }) => ({ key: keyOf(one), resource: deleted ? undefined : one }));

/**
 * Most histories begin with a Gateway that takes everybody, a certificate and a Service in each
 * namespace: edits then meet something.
 */
const foundation: readonly Change[] = [
  object("Gateway", {
    metadata: metadata("ns-plat", "gw-main"),
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      infrastructure: { allowedChildren: { namespaces: { from: "All" } } },
      listeners: [],
    },
  }),
  ...TENANTS.flatMap((home) => [
    object("Secret", {
      metadata: metadata(home, "sec-good"),
      type: "kubernetes.io/tls",
      data: { "tls.crt": "pair-one", "tls.key": "key" },
    }),
    object("Service", { metadata: metadata(home, "svc-good"), spec: { ports: [{ port: 8080 }] } }),
  ]),
].map((one) => ({ key: keyOf(one), resource: one }));

/** Steps of one to three changes each. */
export const history: fc.Arbitrary<readonly (readonly Change[])[]> = fc
  .tuple(
    fc.constantFrom([], [foundation], [foundation], [foundation]),
    fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 30, size: "max" }),
  )
  .map(([start, steps]) => [...start, ...steps]);
