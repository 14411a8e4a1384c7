import type { BackendLimits } from "./limits/backend-limits.ts";
import type { LoadBalancing } from "./load-balancing.ts";
import type { ItemId } from "./plan.ts";
import type { PersistencePolicy } from "./rule.ts";

/**
 * One port of one Service, with the addresses that serve it. A route with a policy of its own about
 * backends has an item of its own: how it reaches a Service is nobody else's concern.
 */
export interface BackendItem {
  readonly type: "backend";
  readonly id: ItemId;
  readonly gateway: string;
  readonly service: { readonly namespace: string; readonly name: string; readonly port: number };
  /** How to speak to it; `http` lets the data plane choose HTTP/1.1, or HTTP/2 for gRPC. */
  readonly protocol: BackendProtocol;
  /** Empty: the Service exists and has no ready endpoint, requests get 503. */
  readonly endpoints: readonly Endpoint[];
  readonly tls?: BackendTls;
  /** Absent: round robin. */
  readonly balancing?: LoadBalancing;
  /**
   * Sessions stay on their endpoint while it is there. What clients say of it is only a choice
   * among the endpoints above.
   */
  readonly persistence?: PersistencePolicy;
  readonly limits?: BackendLimits;
  /**
   * Set when a policy of this backend cannot be applied: every request gets 500 rather than an
   * unprotected connection.
   */
  readonly refused?: string;
}

export type BackendProtocol = "http" | "h2c" | "websocket" | "tcp" | "udp";

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

export interface BackendTls {
  /** SNI, and the name that the certificate must carry unless `subjectAltNames` says otherwise. */
  readonly hostname: string;
  readonly subjectAltNames: readonly { readonly type: "Hostname" | "URI"; readonly value: string }[];
  /** PEM bundles, or the system's own authorities. */
  readonly authorities: readonly string[] | "system";
}
