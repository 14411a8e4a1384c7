import { isIP } from "node:net";
import type { BackendItem, Endpoint } from "../../../plan/backend.ts";
import { stricterLimit } from "../../../plan/limits/backend-limits.ts";
import type { TenantLimits } from "../../../plan/tenant-limits.ts";
import { resource, type XdsResource } from "../ads/resource.ts";
import { cluster, loadAssignment, upstreamTls } from "../messages/cluster.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import {
  certificateSecretName,
  clusterName,
  endpointsName,
  SYSTEM_AUTHORITIES,
  type Variant,
} from "./names.ts";

const CONNECT_TIMEOUT_MS = 5_000;

/** What all clusters of a Gateway share. */
export interface ClusterSettings {
  readonly clientCertificate: string | undefined;
  readonly limits: TenantLimits;
}

export interface ClusterUse {
  readonly variant: Variant;
  /**
   * Whether a rule retries requests to it. To Envoy the way to the next endpoint is a retry as
   * well, which no budget is to limit where nobody retries.
   */
  readonly isRetried: boolean;
}

/**
 * The cluster of a backend. Its endpoints are a separate resource, so that they change without the
 * loss of a connection.
 */
export function backendCluster(
  backend: BackendItem,
  { variant, isRetried }: ClusterUse,
  { clientCertificate, limits }: ClusterSettings,
): XdsResource {
  const name = clusterName(backend.gateway, backend.id, variant);
  const service = endpointsName(backend.gateway, backend.id);
  const http2 = variant === "h2" || backend.protocol === "h2c";
  const content = cluster({
    name,
    service,
    http: http2 ? "2" : backend.tls !== undefined && backend.protocol === "http" ? "auto" : "1",
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    limits: {
      // A session is to UDP what a client's connection is to the others.
      connections: stricterLimit(
        backend.protocol === "udp" ? limits.connections : limits.backendConnections,
        backend.limits?.connections,
      ),
      requests: stricterLimit(limits.requests, backend.limits?.requests),
      pendingRequests: stricterLimit(limits.requests, backend.limits?.pendingRequests),
    },
    hasRetryBudget: isRetried,
    transportSocket: transportSocket(backend, http2, clientCertificate),
    balancing: backend.balancing?.type === "roundRobin" ? undefined : backend.balancing,
  });
  return resource("cluster", name, content, { refreshes: { kind: "endpoints", name: service } });
}

function transportSocket(
  { tls, protocol }: BackendItem,
  http2: boolean,
  clientCertificate: string | undefined,
): Message<proto.TransportSocket> | undefined {
  if (tls === undefined) return undefined;
  const names = tls.subjectAltNames.map(({ type, value }) => ({
    type: type === "URI" ? ("uri" as const) : ("dns" as const),
    value,
  }));
  return upstreamTls({
    sni: tls.hostname,
    names: names.length > 0 ? names : [{ type: "dns", value: tls.hostname }],
    authorities:
      tls.authorities === "system" ? { secret: SYSTEM_AUTHORITIES } : { pem: tls.authorities.join("\n") },
    clientCertificate: clientCertificate === undefined ? undefined : certificateSecretName(clientCertificate),
    alpn: http2 ? ["h2"] : protocol === "http" ? ["h2", "http/1.1"] : protocol === "tcp" ? [] : ["http/1.1"],
  });
}

export function backendEndpoints({ gateway, id, endpoints }: BackendItem): XdsResource {
  const name = endpointsName(gateway, id);
  const servable = servableEndpoints(endpoints);
  return resource(
    "endpoints",
    name,
    loadAssignment(name, servable.length === 0 ? [] : [{ name: "", endpoints: servable }]),
  );
}

/** Envoy accepts IP addresses only, and rejects all endpoints if one is not valid. */
export function servableEndpoints(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.filter(
    ({ address, port }) => isIP(address) !== 0 && Number.isInteger(port) && port > 0 && port < 65_536,
  );
}
