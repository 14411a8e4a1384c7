// The tenants as files, as `mergeway run` reads them: each has a ListenerSet with a hostname and a
// certificate, four routes and a Service of its own. JSON is YAML, so files are written as JSON.

import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { authority, issue } from "../../test/dataplanes/support/certificates.ts";

const ROUTES = 4;
const ca = authority();

export interface Place {
  /** Where the manifests are. */
  readonly manifests: string;
  /** Beside it: files are written here first, so that nobody ever reads half of one. */
  readonly scratch: string;
  readonly port: number;
  readonly backendPorts: readonly [number, number];
}

/** What may differ from one version of a tenant to the next. */
export interface Version {
  readonly certificate: number;
  readonly backend: 0 | 1;
  /** A path of one more route, which nobody asks for. */
  readonly extraPath: string;
}

export function hostOf(tenant: string): string {
  return `${tenant}.example.com`;
}

export const PATHS: readonly string[] = Array.from({ length: ROUTES }, (_, route) => `/path-${route}`);

export function writeGateway(place: Place): void {
  const listener = { name: "https", port: place.port, protocol: "HTTPS", hostname: "platform.example.com" };
  put(place, "gateway.yaml", [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "infra" } },
    gatewayApi("GatewayClass", { name: "mergeway" }, { controllerName: "mergeway.dev/controller" }),
    gatewayApi(
      "Gateway",
      { name: "shared", namespace: "infra" },
      {
        gatewayClassName: "mergeway",
        allowedListeners: { namespaces: { from: "All" } },
        listeners: [{ ...listener, tls: { certificateRefs: [{ name: "platform-tls" }] } }],
      },
    ),
    secret("infra", "platform-tls", "platform.example.com"),
  ]);
}

/**
 * Keys are made anew only when the certificate's number is another one: a file that stays the same
 * is no change.
 */
export function writeTenant(place: Place, tenant: string, version: Version, before?: Version): void {
  const tls = { certificateRefs: [{ name: "tls" }] };
  const listener = { name: "https", port: place.port, protocol: "HTTPS", hostname: hostOf(tenant), tls };
  const parentRef = { name: "shared", namespace: "infra" };
  if (before?.certificate !== version.certificate) {
    put(place, `${tenant}-certificate.yaml`, [secret(tenant, "tls", hostOf(tenant))]);
  }
  put(place, `${tenant}.yaml`, [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: tenant } },
    gatewayApi("ListenerSet", { name: "own", namespace: tenant }, { parentRef, listeners: [listener] }),
    ...[...PATHS, version.extraPath].map((path, number) => route(tenant, `route-${number}`, path)),
    service(tenant),
    slice(tenant, place.backendPorts[version.backend]),
  ]);
}

export function removeTenant(place: Place, tenant: string): void {
  for (const name of [`${tenant}.yaml`, `${tenant}-certificate.yaml`]) {
    rmSync(join(place.manifests, name), { force: true });
  }
}

function put({ manifests, scratch }: Place, name: string, documents: readonly object[]): void {
  const text = documents.map((each) => JSON.stringify(each)).join("\n---\n");
  writeFileSync(join(scratch, name), text);
  renameSync(join(scratch, name), join(manifests, name));
}

function gatewayApi(kind: string, metadata: object, spec: object): object {
  return { apiVersion: "gateway.networking.k8s.io/v1", kind, metadata, spec };
}

function route(tenant: string, name: string, path: string): object {
  const rule = {
    matches: [{ path: { type: "PathPrefix", value: path } }],
    backendRefs: [{ name: "web", port: 80 }],
  };
  const parentRefs = [{ kind: "ListenerSet", group: "gateway.networking.k8s.io", name: "own" }];
  return gatewayApi("HTTPRoute", { name, namespace: tenant }, { parentRefs, rules: [rule] });
}

function secret(namespace: string, name: string, host: string): object {
  const { cert, key } = issue(ca, [host]);
  const data = { "tls.crt": base64(cert), "tls.key": base64(key) };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace },
    type: "kubernetes.io/tls",
    data,
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function service(namespace: string): object {
  const ports = [{ name: "http", port: 80 }];
  return { apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace }, spec: { ports } };
}

function slice(namespace: string, port: number): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "web-1", namespace, labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    ports: [{ name: "http", port, protocol: "TCP" }],
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
  };
}
