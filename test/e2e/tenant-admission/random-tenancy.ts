/** Random TenantPolicies, one for each Gateway, and random objects that ask for something. */
import { ATTACH_TO_ANNOTATION } from "../../../src/engine/listeners/owners.ts";
import type { Random } from "../admission/random.ts";

export const PLATFORM = "gateways";
export const TEAMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "team-ant": { tenant: "yes", team: "ant" },
  "team-bee": { tenant: "yes", team: "Bee", stage: "prod" },
  "team-cat": { team: "a.b" },
  "team-dog": { tenant: "", team: "a..b" },
  "team-elk": {},
};

const GATEWAY_API = "gateway.networking.k8s.io";
const BASES = ["shop.test", "ant.test", "bee.test", "team-ant.test", "a.b.test", "api.shop.test"];
const NAMES = [...BASES, ...BASES.map((name) => `x.${name}`), "test", "else.where", "xshop.test"];
const HOSTNAMES = [...NAMES, ...NAMES.map((name) => `*.${name}`), undefined];
const PATTERNS = [
  ...["*", "*.test", "*.shop.test", "shop.test", "x.shop.test", "*.x.shop.test"],
  ...[
    "{namespace}.test",
    "*.{namespace}.test",
    "{label:team}.test",
    "*.{label:team}.test",
    "x.{label:team}.test",
  ],
  ...[
    "{label:tenant}.test",
    "api.{label:gone}.test",
    "{label:team}-{label:stage}.test",
    "*.{label:stage}.{namespace}.test",
  ],
];
const RESERVED = ["x.shop.test", "*.api.shop.test", "bee.test", "*.where"];
const PROTOCOLS = ["HTTP", "HTTPS", "TLS", "TCP", "UDP"];
const ROUTE_KINDS = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];
const PORTS = [80, 443, 8080, 9000];

function some<T>(random: Random, choices: readonly T[], most: number, least = 0): readonly T[] {
  return Array.from({ length: least + random.below(most + 1 - least) }, () => random.of(choices));
}

function maybe<T extends object>(random: Random, chance: number, make: () => T): T | Record<string, never> {
  return random.next() < chance ? make() : {};
}

function selector(random: Random): object {
  const key = random.of(["tenant", "team", "stage", "kubernetes.io/metadata.name"]);
  const values = ["yes", "", "ant", "Bee", "prod", "team-cat", "team-ant"];
  const operator = random.of(["In", "NotIn", "Exists", "DoesNotExist"]);
  const isList = operator === "In" || operator === "NotIn";
  const expression = { key, operator, ...(isList ? { values: some(random, values, 3, 1) } : {}) };
  return {
    ...maybe(random, 0.4, () => ({ matchLabels: { [key]: random.of(values) } })),
    ...maybe(random, 0.5, () => ({ matchExpressions: [expression] })),
  };
}

function rule(random: Random): object {
  return {
    namespaceSelector: selector(random),
    hostnames: {
      allow: some(random, PATTERNS, 4),
      ...maybe(random, 0.4, () => ({ deny: some(random, PATTERNS.slice(1), 2) })),
    },
    ...maybe(random, 0.3, () => ({
      ports: some(random, PORTS, 2, 1).map((port) => ({
        port,
        ...maybe(random, 0.3, () => ({ endPort: port + 1000 })),
      })),
    })),
    ...maybe(random, 0.3, () => ({ protocols: some(random, PROTOCOLS, 4, 1) })),
    ...maybe(random, 0.3, () => ({ routeKinds: some(random, ROUTE_KINDS, 4, 1) })),
  };
}

export function gatewayName(index: number): string {
  return `gw-${index}`;
}

export function tenantPolicy(random: Random, index: number): object {
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TenantPolicy",
    metadata: { name: `policy-${index}`, namespace: PLATFORM },
    spec: {
      targetRefs: [{ kind: "Gateway", name: gatewayName(index) }],
      ...maybe(random, 0.1, () => ({ enforcement: "Audit" })),
      ...maybe(random, 0.4, () => ({ unmatchedNamespaces: random.of(["Allow", "Deny"]) })),
      ...maybe(random, 0.5, () => ({ reservedHostnames: some(random, RESERVED, 3) })),
      ...maybe(random, 0.9, () => ({
        rules: Array.from({ length: 1 + random.below(4) }, () => rule(random)),
      })),
    },
  };
}

/** Takes every set, child and route: what is refused there is refused by the policy. */
export function openGateway(index: number): object {
  const allowedRoutes = { namespaces: { from: "All" } };
  return {
    apiVersion: `${GATEWAY_API}/v1`,
    kind: "Gateway",
    metadata: {
      name: gatewayName(index),
      namespace: PLATFORM,
      annotations: { "mergeway.dev/allowed-children": "All" },
    },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [
        { name: "http", port: 80, protocol: "HTTP", allowedRoutes },
        { name: "tls", port: 443, protocol: "TLS", tls: { mode: "Passthrough" }, allowedRoutes },
        { name: "tcp", port: 9000, protocol: "TCP", allowedRoutes },
        { name: "udp", port: 9000, protocol: "UDP", allowedRoutes },
      ],
    },
  };
}

function listener(random: Random, index: number): object {
  const protocol = random.of([...PROTOCOLS, "HTTP", "HTTP", "HTTP"]);
  const hostname = protocol === "TCP" || protocol === "UDP" ? undefined : random.of(HOSTNAMES);
  return {
    name: `l${index}`,
    port: random.of(PORTS) + index,
    protocol,
    ...(hostname === undefined ? {} : { hostname }),
    ...(protocol === "TLS" ? { tls: { mode: "Passthrough" } } : {}),
    ...(protocol === "HTTPS" ? { tls: { certificateRefs: [{ name: "certificate" }] } } : {}),
  };
}

interface Made {
  readonly path: string;
  readonly object: object;
  readonly isRoute: boolean;
  /** The API server knows all that the answer depends on. */
  readonly isDecidable: boolean;
}

const ROUTES: readonly (readonly [kind: string, plural: string, versions: readonly string[]])[] = [
  ["HTTPRoute", "httproutes", ["v1", "v1beta1"]],
  ["GRPCRoute", "grpcroutes", ["v1"]],
  ["TLSRoute", "tlsroutes", ["v1", "v1alpha2", "v1alpha3"]],
  ["TCPRoute", "tcproutes", ["v1", "v1alpha2"]],
  ["UDPRoute", "udproutes", ["v1", "v1alpha2"]],
];

export function wantingObject(random: Random, policies: number, index: number): Made {
  const gateway = gatewayName(random.below(policies));
  const namespace = random.of([...Object.keys(TEAMS), ...Object.keys(TEAMS), PLATFORM]);
  const metadata = { name: `object-${index}`, namespace };
  const kind = random.of(["ListenerSet", "ListenerSet", "XListenerSet", "Gateway", "route", "route"]);
  return kind === "route"
    ? wantingRoute(random, metadata, gateway)
    : wantingOwner(random, kind, metadata, gateway);
}

interface Place {
  readonly name: string;
  readonly namespace: string;
}

function wantingOwner(random: Random, kind: string, metadata: Place, gateway: string): Made {
  const listeners = Array.from({ length: 1 + random.below(3) }, (_, index) => listener(random, index));
  const isExperimental = kind === "XListenerSet";
  const group = isExperimental ? "gateway.networking.x-k8s.io" : GATEWAY_API;
  const version = isExperimental ? "v1alpha1" : kind === "Gateway" ? random.of(["v1", "v1beta1"]) : "v1";
  const plural = `${kind.toLowerCase()}s`;
  const spec =
    kind === "Gateway"
      ? { gatewayClassName: "mergeway", listeners }
      : { parentRef: { name: gateway, namespace: PLATFORM }, listeners };
  const annotations =
    kind === "Gateway" ? { annotations: { [ATTACH_TO_ANNOTATION]: `${PLATFORM}/${gateway}` } } : {};
  return {
    path: `/apis/${group}/${version}/namespaces/${metadata.namespace}/${plural}`,
    object: { apiVersion: `${group}/${version}`, kind, metadata: { ...metadata, ...annotations }, spec },
    isRoute: false,
    isDecidable: true,
  };
}

function wantingRoute(random: Random, metadata: Place, gateway: string): Made {
  const [kind, plural, versions] = random.of(ROUTES);
  const version = random.of(versions);
  const isNamed = kind !== "TCPRoute" && kind !== "UDPRoute";
  const asked = some(random, HOSTNAMES, 3, kind === "TLSRoute" ? 1 : 0).flatMap((name) => name ?? []);
  const hostnames = asked.length === 0 && kind === "TLSRoute" ? ["shop.test"] : [...new Set(asked)];
  const backendRefs = [{ name: "app", port: 80 }];
  return {
    path: `/apis/${GATEWAY_API}/${version}/namespaces/${metadata.namespace}/${plural}`,
    object: {
      apiVersion: `${GATEWAY_API}/${version}`,
      kind,
      metadata,
      spec: {
        parentRefs: [{ name: gateway, namespace: PLATFORM }],
        ...(isNamed && hostnames.length > 0 ? { hostnames } : {}),
        rules: [{ backendRefs }],
      },
    },
    isRoute: true,
    isDecidable: isNamed && hostnames.length > 0 && hostnames.every((name) => !name.startsWith("*")),
  };
}
