/**
 * Tenants as an API server would give them: each has a ListenerSet with a hostname and a
 * certificate, 16 routes, and a Service of its own.
 */

import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { authority, issue, type TestCertificate } from "../../test/dataplanes/support/certificates.ts";

export const ROUTES = 16;
const ca = authority();

export interface Change {
  readonly key: Key;
  readonly resource: Resource | undefined;
}

export function hostOf(tenant: string): string {
  return `${tenant}.example.com`;
}

export function pathOf(route: number): string {
  return `/path-${route}`;
}

export function newCertificate(tenant: string): TestCertificate {
  return issue(ca, [hostOf(tenant)]);
}

export function gatewayChange(): Change {
  return change({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "shared", namespace: "infra", creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [
        { name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "Same" } } },
      ],
    },
  });
}

export function tenantChanges(
  tenant: string,
  certificate: TestCertificate,
  backendPort: number,
): readonly Change[] {
  return [
    change({ apiVersion: "v1", kind: "Namespace", metadata: { name: tenant } }),
    change(listenerSet(tenant)),
    secretChange(tenant, certificate),
    change(service(tenant)),
    change(slice(tenant, backendPort)),
    ...Array.from({ length: ROUTES }, (_, route) => routeChange(tenant, route, pathOf(route))),
  ];
}

export function goneTenant(tenant: string): readonly Change[] {
  return tenantChanges(tenant, { cert: "", key: "" }, 1).map(({ key }) => ({ key, resource: undefined }));
}

export function secretChange(tenant: string, { cert, key }: TestCertificate): Change {
  const data = { "tls.crt": base64(cert), "tls.key": base64(key) };
  return change({
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadata(tenant, "tls"),
    type: "kubernetes.io/tls",
    data,
  });
}

export function routeChange(tenant: string, route: number, path: string): Change {
  return change({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: metadata(tenant, `route-${route}`),
    spec: {
      parentRefs: [{ group: "gateway.networking.k8s.io", kind: "ListenerSet", name: "own" }],
      hostnames: [hostOf(tenant)],
      rules: [
        {
          matches: [{ path: { type: "PathPrefix", value: path } }],
          backendRefs: [{ group: "", kind: "Service", name: "web", port: 80, weight: 1 }],
        },
      ],
    },
  });
}

function listenerSet(tenant: string): unknown {
  const tls = { mode: "Terminate", certificateRefs: [{ group: "", kind: "Secret", name: "tls" }] };
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "ListenerSet",
    metadata: metadata(tenant, "own"),
    spec: {
      parentRef: { group: "gateway.networking.k8s.io", kind: "Gateway", name: "shared", namespace: "infra" },
      listeners: [
        {
          name: "https",
          hostname: hostOf(tenant),
          port: 443,
          protocol: "HTTPS",
          tls,
          allowedRoutes: { namespaces: { from: "Same" } },
        },
      ],
    },
  };
}

function service(tenant: string): unknown {
  const ports = [{ name: "http", port: 80, protocol: "TCP" }];
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(tenant, "web"),
    spec: { type: "ClusterIP", clusterIP: "10.0.0.1", ports },
  };
}

function slice(tenant: string, port: number): unknown {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { ...metadata(tenant, "web-x"), labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    ports: [{ name: "http", port, protocol: "TCP" }],
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
  };
}

function metadata(namespace: string, name: string): object {
  return {
    name,
    namespace,
    generation: 1,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
  };
}

/** Through JSON, so that each object owns its strings as objects from an API server do. */
function change(object: unknown): Change {
  const resource = JSON.parse(JSON.stringify(object)) as Resource;
  return { key: keyOf(resource), resource };
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
