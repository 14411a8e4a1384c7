/** Tenants as resources: a ListenerSet with its certificate, a route, a Service. */

import { admit } from "../../../src/api/admission/admit.ts";
import { type Key, keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import type { TestCertificate } from "../support/certificates.ts";

export interface Tenant {
  readonly name: string;
  readonly certificate: TestCertificate;
  /** Where its backend listens. */
  readonly backend: number;
  /** Ports of its listeners; 443 is HTTPS, everything else HTTP. */
  readonly ports: readonly number[];
  readonly routeKind?: "HTTPRoute" | "GRPCRoute";
  /** What its route adds to every answer. */
  readonly edition?: string;
}

export interface Change {
  readonly key: Key;
  readonly resource: Resource | undefined;
}

type Manifest = Readonly<Record<string, unknown>>;

const API = "gateway.networking.k8s.io/v1";

export function hostOf({ name }: Pick<Tenant, "name">): string {
  return `${name}.test`;
}

export function gateway(): readonly Change[] {
  return [
    added({
      apiVersion: API,
      kind: "Gateway",
      metadata: { name: "edge", namespace: "platform" },
      spec: {
        gatewayClassName: "mergeway",
        allowedListeners: { namespaces: { from: "All" } },
        listeners: [{ name: "own", port: 80, protocol: "HTTP", hostname: "platform.test" }],
      },
    }),
  ];
}

export function arrival(tenant: Tenant): readonly Change[] {
  return manifestsOf(tenant).map(added);
}

export function departure(tenant: Tenant): readonly Change[] {
  return arrival(tenant).map(({ key }) => ({ key, resource: undefined }));
}

function added(manifest: Manifest): Change {
  const { resource, errors } = admit(manifest);
  if (resource === undefined) throw new Error(errors.map(({ message }) => message).join("; "));
  return { key: keyOf(resource), resource };
}

function manifestsOf(tenant: Tenant): readonly Manifest[] {
  const { name, certificate, backend, ports, routeKind = "HTTPRoute" } = tenant;
  const metadata = { name, namespace: name };
  return [
    {
      apiVersion: API,
      kind: "ListenerSet",
      metadata,
      spec: {
        parentRef: { name: "edge", namespace: "platform" },
        listeners: ports.map((port) => listener(tenant, port)),
      },
    },
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      type: "kubernetes.io/tls",
      data: { "tls.crt": base64(certificate.cert), "tls.key": base64(certificate.key) },
    },
    {
      apiVersion: API,
      kind: routeKind,
      metadata,
      spec: {
        parentRefs: [{ group: "gateway.networking.k8s.io", kind: "ListenerSet", name }],
        rules: [rule(tenant)],
      },
    },
    { apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 80 }] } },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      ports: [{ name: "", port: backend, protocol: "TCP" }],
      endpoints: [{ addresses: ["127.0.0.1"] }],
    },
  ];
}

function listener(tenant: Tenant, port: number): Manifest {
  const tls = { mode: "Terminate", certificateRefs: [{ name: tenant.name }] };
  return {
    name: `port-${port}`,
    port,
    hostname: hostOf(tenant),
    protocol: port === 443 ? "HTTPS" : "HTTP",
    ...(port === 443 ? { tls } : {}),
  };
}

function rule({ name, edition }: Tenant): Manifest {
  const set = [{ name: "x-edition", value: edition }];
  return {
    backendRefs: [{ name, port: 80 }],
    ...(edition === undefined
      ? {}
      : { filters: [{ type: "ResponseHeaderModifier", responseHeaderModifier: { set } }] }),
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
