/**
 * The table that every contestant serves: 2,500 tenants with a hostname, a certificate and 16
 * routes each. Fifteen are prefixes to the tenant's HTTP backend, one is a gRPC service; over HTTPS
 * a tenant's routes are its own listener's, as isolation asks.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CertificateItem, PrivateKey } from "../../src/plan/certificate.ts";
import type { HostItem, ListenerItem, PlanItem, PortItem } from "../../src/plan/plan.ts";
import type { Rule } from "../../src/plan/rule.ts";
import { authority, issue } from "../../test/dataplanes/support/certificates.ts";

export const TENANTS = 2_500;
export const HTTP_ROUTES = 15;
export const GRPC_SERVICE = "bench.Echo";
/**
 * Tenants that are asked for: enough to be no special case, few enough for kept-alive connections
 * to their backends.
 */
export const HOT_TENANTS = 250;

export interface World {
  readonly tenants: number;
  /** Holds one certificate and key for each tenant. */
  readonly certificates: string;
  readonly backendPort: number;
  readonly grpcPort: number;
}

export function hostOf(tenant: number): string {
  return `tenant-${tenant}.test`;
}

export function prefixOf(route: number): string {
  return `/path-${route}`;
}

export function certificateFile({ certificates }: World, tenant: number): string {
  return join(certificates, `${tenant}.crt`);
}

export function keyFile({ certificates }: World, tenant: number): string {
  return join(certificates, `${tenant}.key`);
}

export function writeCertificates(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const ca = authority();
  for (let tenant = 0; tenant < TENANTS; tenant++) {
    const { cert, key } = issue(ca, [hostOf(tenant)]);
    writeFileSync(join(folder, `${tenant}.crt`), cert);
    writeFileSync(join(folder, `${tenant}.key`), key);
  }
}

const gateway = "bench/edge";
const http: PortItem = { type: "port", id: "http", gateway, transport: "tcp", port: 80, protocol: "http" };
const tls: PortItem = { type: "port", id: "tls", gateway, transport: "tcp", port: 443, protocol: "tls" };

export function planOf(world: World): readonly PlanItem[] {
  const items: PlanItem[] = [{ type: "gateway", id: "gateway", gateway }, http, tls];
  for (let tenant = 0; tenant < world.tenants; tenant++) items.push(...tenantItems(world, tenant));
  return items;
}

export function tenantItems(world: World, tenant: number): readonly PlanItem[] {
  const certificate: CertificateItem = {
    type: "certificate",
    id: `certificate-${tenant}`,
    gateway,
    chain: readFileSync(certificateFile(world, tenant), "utf8"),
    key: new PrivateKey(readFileSync(keyFile(world, tenant), "utf8")),
    names: [hostOf(tenant)],
  };
  const clear = listener(tenant, http);
  const secure = listener(tenant, tls, { mode: "Terminate", certificates: [certificate.id] });
  return [
    certificate,
    clear,
    secure,
    host(clear, tenant),
    host(secure, tenant),
    backend(tenant, "web", world.backendPort),
    backend(tenant, "grpc", world.grpcPort),
  ];
}

function listener(tenant: number, { id: port, protocol }: PortItem, own?: ListenerItem["tls"]): ListenerItem {
  return {
    type: "listener",
    id: `${port}-${tenant}`,
    gateway,
    port,
    owner: { kind: "ListenerSet", namespace: `team-${tenant}`, name: "own" },
    section: port,
    hostname: hostOf(tenant),
    protocol: protocol === "http" ? "HTTP" : "HTTPS",
    ...(own === undefined ? {} : { tls: own }),
  };
}

function host(of: ListenerItem, tenant: number): HostItem {
  const rules = Array.from({ length: HTTP_ROUTES }, (_, route) =>
    rule(tenant, { kind: "HTTPRoute", route, prefix: prefixOf(route), backend: "web" }),
  );
  rules.push(rule(tenant, { kind: "GRPCRoute", route: 0, prefix: `/${GRPC_SERVICE}`, backend: "grpc" }));
  return { type: "host", id: `host-${of.id}`, gateway, listener: of.id, hostname: of.hostname, rules };
}

function rule(
  tenant: number,
  parts: {
    readonly kind: "HTTPRoute" | "GRPCRoute";
    readonly route: number;
    readonly prefix: string;
    readonly backend: string;
  },
): Rule {
  return {
    origin: {
      kind: parts.kind,
      namespace: `team-${tenant}`,
      name: `route-${parts.route}`,
      rule: 0,
      match: 0,
    },
    match: { path: { type: "prefix", value: parts.prefix }, headers: [], query: [] },
    action: {
      type: "forward",
      backends: [{ backend: `${parts.backend}-${tenant}`, weight: 1, filters: {} }],
      filters: {},
      timeouts: {},
    },
  };
}

function backend(tenant: number, name: string, port: number): PlanItem {
  return {
    type: "backend",
    id: `${name}-${tenant}`,
    gateway,
    service: { namespace: `team-${tenant}`, name, port: 80 },
    protocol: "http",
    endpoints: [{ address: "127.0.0.1", port }],
  };
}
