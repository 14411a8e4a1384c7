/**
 * The plan: what a data plane must do, in no data plane's words.
 *
 * It is a set of small immutable items with stable ids. One tenant is one small set of items (its
 * listeners, its host tables, its certificates, its backends), so a change of one tenant is a delta
 * of a few items, whatever else exists. Items refer to each other by id and always carry the
 * Gateway they belong to: a data plane that serves one Gateway is given that Gateway's items and no
 * others.
 *
 *   gateway ─┬─ port ─── listener ─── host ─── rules ─┬→ backend
 *            └─ certificate ↗ (listener.tls)           └→ guard
 */

import type { BackendItem } from "./backend.ts";
import type { CertificateItem } from "./certificate.ts";
import type { ClientAddressPlan } from "./client-address.ts";
import type { ClientValidation } from "./client-validation.ts";
import type { GuardItem } from "./guard.ts";
import type { ClientLimits } from "./limits/client-limits.ts";
import type { Rule } from "./rule.ts";
import type { TenantLimits } from "./tenant-limits.ts";

export type ItemId = string;

export type PlanItem =
  | GatewayItem
  | PortItem
  | ListenerItem
  | HostItem
  | GuardItem
  | BackendItem
  | CertificateItem;

/** What changed between two plans: removed ids never appear among the upserts. */
export interface PlanDelta {
  readonly upserts: readonly PlanItem[];
  readonly removes: readonly ItemId[];
}

export interface GatewayItem {
  readonly type: "gateway";
  readonly id: ItemId;
  /** The item's own Gateway, as `namespace/name`. */
  readonly gateway: string;
  /** Presented to backends that ask for a client certificate (Gateway.spec.tls.backend). */
  readonly clientCertificate?: ItemId;
  /** What each tenant may have at a time at one pod; absent: DEFAULT_TENANT_LIMITS. */
  readonly tenantLimits?: TenantLimits;
}

export type Transport = "tcp" | "udp";

/**
 * How the first bytes on a port are read. `tls` serves HTTPS, TLS terminate and TLS passthrough
 * side by side.
 */
export type PortProtocol = "http" | "tls" | "tcp" | "udp";

export interface PortItem {
  readonly type: "port";
  readonly id: ItemId;
  readonly gateway: string;
  readonly transport: Transport;
  readonly port: number;
  readonly protocol: PortProtocol;
  /**
   * Asks HTTPS clients of this port for a certificate (Gateway.spec.tls.frontend, or a ClientPolicy
   * of the Gateway).
   */
  readonly clientValidation?: ClientValidation;
  readonly clientAddress?: ClientAddressPlan;
  readonly clientLimits?: ClientLimits;
}

export type ListenerProtocol = "HTTP" | "HTTPS" | "TLS" | "TCP" | "UDP";

export interface ListenerItem {
  readonly type: "listener";
  readonly id: ItemId;
  readonly gateway: string;
  readonly port: ItemId;
  readonly owner: OwnerRef;
  readonly section: string;
  /**
   * Sorts in the Gateway's order of precedence. For data planes that cannot tell listeners apart by
   * port.
   */
  readonly rank?: string;
  /** Lower case; `*.example.com` matches any number of labels; empty matches every name. */
  readonly hostname: string;
  readonly protocol: ListenerProtocol;
  readonly tls?: ListenerTlsPlan;
}

/** The object that carries a listener. */
export interface OwnerRef {
  readonly kind: "Gateway" | "ListenerSet" | "XListenerSet";
  readonly namespace: string;
  readonly name: string;
}

export type TlsVersion = "1.2" | "1.3";

export interface ListenerTlsPlan {
  readonly mode: "Terminate" | "Passthrough";
  /** In the order of certificateRefs; empty for Passthrough. */
  readonly certificates: readonly ItemId[];
  readonly minVersion?: TlsVersion;
  readonly maxVersion?: TlsVersion;
  /**
   * Application protocols offered, most wanted first; absent means the data plane's default (h2,
   * http/1.1).
   */
  readonly alpn?: readonly string[];
  /** Asks clients of this listener for a certificate; absent: as its port does. */
  readonly clientValidation?: ClientValidation;
}

/**
 * The rules of one hostname at one listener. A request belongs to the hosts whose pattern matches
 * its name; the rules of the most specific pattern come first, then those of the next, so a more
 * general route still serves what a more specific one leaves open.
 */
export interface HostItem {
  readonly type: "host";
  readonly id: ItemId;
  readonly gateway: string;
  readonly listener: ItemId;
  /** A pattern like the listener's, never wider than it. */
  readonly hostname: string;
  /** In order of precedence: the first rule that matches serves. */
  readonly rules: readonly Rule[];
}
