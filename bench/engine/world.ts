/**
 * A world of tenants: one Gateway, in every namespace ListenerSets with a hostname and certificate
 * of their own, and for each set routes, Services and EndpointSlices. Objects go through JSON, so
 * each owns its strings as objects from an API server do.
 */
import { readFileSync } from "node:fs";
import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";

export interface Scale {
  readonly name: string;
  readonly namespaces: number;
  readonly setsPerNamespace: number;
}

export const SCALES: readonly Scale[] = [
  { name: "a hundredth", namespaces: 5, setsPerNamespace: 5 },
  { name: "a tenth", namespaces: 25, setsPerNamespace: 10 },
  { name: "full", namespaces: 50, setsPerNamespace: 50 },
];

export const ROUTES_PER_SET = 16;
const SERVICES_PER_SET = 4;

export interface Change {
  readonly key: Key;
  readonly resource: Resource | undefined;
}

export function routesOf({ namespaces, setsPerNamespace }: Scale): number {
  return namespaces * setsPerNamespace * ROUTES_PER_SET;
}

export function* world(scale: Scale): Iterable<Change> {
  yield change(gateway());
  for (let n = 0; n < scale.namespaces; n++) {
    yield change({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespaceName(n) } });
    for (let s = 0; s < scale.setsPerNamespace; s++) {
      yield change(listenerSet(n, s));
      yield change(secret(n, s, "a.example.com"));
      for (let v = 0; v < SERVICES_PER_SET; v++) {
        yield change(service(n, s, v));
        yield change(slice(n, s, v, 1));
      }
      for (let r = 0; r < ROUTES_PER_SET; r++) yield change(route(n, s, r));
    }
  }
}

function change(object: unknown): Change {
  const resource = JSON.parse(JSON.stringify(object)) as Resource;
  return { key: keyOf(resource), resource };
}

/** What is done to a world, and how it is undone. */
export interface Edit {
  readonly name: string;
  readonly apply: (n: number, s: number) => readonly Change[];
  readonly revert: (n: number, s: number) => readonly Change[];
}

const NEW_SET = 1000;
const NEW_ROUTE = 1000;

export const EDITS: readonly Edit[] = [
  {
    name: "one route added",
    apply: (n, s) => [change(route(n, s, NEW_ROUTE))],
    revert: (n, s) => [gone(route(n, s, NEW_ROUTE))],
  },
  {
    name: "one set added, with its certificate",
    apply: (n) => [change(listenerSet(n, NEW_SET)), change(secret(n, NEW_SET, "a.example.com"))],
    revert: (n) => [gone(listenerSet(n, NEW_SET)), gone(secret(n, NEW_SET, "a.example.com"))],
  },
  {
    name: "one certificate renewed",
    apply: (n, s) => [change(secret(n, s, "renewed-a.example.com"))],
    revert: (n, s) => [change(secret(n, s, "a.example.com"))],
  },
  {
    name: "one endpoint changed",
    apply: (n, s) => [change(slice(n, s, 0, 2))],
    revert: (n, s) => [change(slice(n, s, 0, 1))],
  },
];

function gone(object: unknown): Change {
  return { key: change(object).key, resource: undefined };
}

const GATEWAY = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "shared", namespace: "infra" };

function namespaceName(n: number): string {
  return `team-${n}`;
}

function gateway(): unknown {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: {
      name: "shared",
      namespace: "infra",
      generation: 1,
      creationTimestamp: "2026-01-01T00:00:00Z",
    },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [
        { name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "Same" } } },
      ],
    },
  };
}

function listenerSet(n: number, s: number): unknown {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "ListenerSet",
    metadata: metadata(n, `set-${s}`),
    spec: {
      parentRef: GATEWAY,
      listeners: [
        {
          name: "https",
          hostname: `set-${s}.team-${n}.example.com`,
          port: 443,
          protocol: "HTTPS",
          tls: {
            mode: "Terminate",
            certificateRefs: [{ group: "", kind: "Secret", name: `certificate-${s}` }],
          },
          allowedRoutes: { namespaces: { from: "Same" } },
        },
      ],
    },
  };
}

function route(n: number, s: number, r: number): unknown {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: metadata(n, `route-${s}-${r}`),
    spec: {
      parentRefs: [{ group: "gateway.networking.k8s.io", kind: "ListenerSet", name: `set-${s}` }],
      hostnames: [`set-${s}.team-${n}.example.com`],
      rules: [
        {
          matches: [{ path: { type: "PathPrefix", value: `/path-${r}` } }],
          backendRefs: [
            {
              group: "",
              kind: "Service",
              name: `service-${s}-${r % SERVICES_PER_SET}`,
              port: 8080,
              weight: 1,
            },
          ],
        },
      ],
    },
  };
}

function service(n: number, s: number, v: number): unknown {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(n, `service-${s}-${v}`),
    spec: {
      type: "ClusterIP",
      clusterIP: "10.0.0.1",
      ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    },
  };
}

function slice(n: number, s: number, v: number, endpoints: number): unknown {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      ...metadata(n, `service-${s}-${v}-x`),
      labels: { "kubernetes.io/service-name": `service-${s}-${v}` },
    },
    addressType: "IPv4",
    ports: [{ name: "http", port: 9000, protocol: "TCP" }],
    endpoints: Array.from({ length: endpoints }, (_, i) => ({
      addresses: [`10.${n}.${s % 250}.${v * 10 + i}`],
      conditions: { ready: true },
    })),
  };
}

/** Every Secret holds the same few key pairs, and each is read by itself. */
function secret(n: number, s: number, pair: string): unknown {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadata(n, `certificate-${s}`),
    type: "kubernetes.io/tls",
    data: { "tls.crt": base64(`${pair}.crt`), "tls.key": base64(`${pair}.key`) },
  };
}

function metadata(n: number, name: string): object {
  return {
    name,
    namespace: namespaceName(n),
    generation: 1,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
  };
}

const files = new Map<string, string>();

function base64(name: string): string {
  const known = files.get(name);
  if (known !== undefined) return known;
  const url = new URL(`../../test/engine/certificates/${name}`, import.meta.url);
  const text = readFileSync(url).toString("base64");
  files.set(name, text);
  return text;
}
