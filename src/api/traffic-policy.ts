import type { ObjectMeta } from "./metadata.ts";
import type { PolicyStatus, PolicyTarget } from "./policies.ts";

/**
 * What traffic must meet (mergeway.dev/v1alpha1): attached to a Gateway, a set, a listener, a route
 * or a rule.
 */
export interface TrafficPolicy {
  readonly apiVersion: string;
  readonly kind: "TrafficPolicy";
  readonly metadata: ObjectMeta;
  readonly spec: {
    /** No field of the API: why a source could not read the settings. */
    readonly unreadable?: string;
    readonly targetRefs: readonly PolicyTarget[];
    /** Each field holds unless a nearer level sets it. */
    readonly defaults?: TrafficSettings;
    /** Each field holds whatever nearer levels set: they can only be stricter. */
    readonly overrides?: TrafficSettings;
  };
  readonly status?: PolicyStatus;
}

export interface TrafficSettings {
  readonly clientAddresses?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
  readonly rateLimits?: readonly RateLimit[];
}

export interface RateLimit {
  readonly requests: number;
  readonly period: string;
  readonly burst?: number;
  readonly per: "All" | "ClientAddress" | "Header";
  readonly header?: string;
}
