import type { ObjectMeta } from "./metadata.ts";

/**
 * Who uses which hostnames of a Gateway (mergeway.dev/v1alpha1). The controller writes it, one
 * object or several for a Gateway, in the Gateway's namespace; the API server refuses by it what
 * others use. It names tenants, so it is for the Gateway's owner alone.
 */
export interface HostnameClaims {
  readonly apiVersion: string;
  readonly kind: "HostnameClaims";
  readonly metadata: ObjectMeta;
  readonly spec: HostnameClaimsSpec;
}

export interface HostnameClaimsSpec {
  /** In the namespace of this object. */
  readonly gateway: string;
  readonly enforcement: "Enforce" | "Audit";
  /** By hostname; `*` is that of listeners without one. */
  readonly names: Readonly<Record<string, ClaimedName>>;
}

export interface ClaimedName {
  /** What tenants are told instead of a name. */
  readonly reference: string;
  /** Namespaces that may ask for it; all others are refused it, and what is below a wildcard. */
  readonly namespaces: readonly string[];
  /** Of a wildcard: names below it that others use, with their namespaces. */
  readonly except?: Readonly<Record<string, readonly string[]>>;
  readonly holders?: readonly ClaimParty[];
  /** Who asks for it and does not get it. */
  readonly wanted?: readonly ClaimParty[];
  /** Who had it before, the last one first. */
  readonly history?: readonly ClaimPast[];
}

export interface ClaimParty {
  /** `Kind/namespace/name` of a ListenerSet, XListenerSet or child Gateway. */
  readonly owner: string;
  readonly since: string;
}

export interface ClaimPast extends ClaimParty {
  readonly until: string;
  /** Released: it asks no more. Transferred: by the Gateway's owner. Lost: others came first. */
  readonly end: "Released" | "Transferred" | "Lost";
}
