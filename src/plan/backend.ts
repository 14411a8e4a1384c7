import type { ItemId } from "./plan.ts";

/** One port of one Service, with the addresses that serve it. */
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
