/**
 * What one pod may have at a time at one backend, beside the limits of tenants; the smaller one
 * holds. Whoever is beyond it gets 503.
 */
export interface BackendLimits {
  /** Further requests wait for one that is free. */
  readonly connections?: number;
  /** Requests that wait for a connection. */
  readonly pendingRequests?: number;
  /** Requests in flight. */
  readonly requests?: number;
}

export const BACKEND_LIMITS = ["connections", "pendingRequests", "requests"] as const;

/** The smaller one; of a tenant's limit 0 is none. */
export function stricterLimit(ofTenant: number, own: number | undefined): number {
  if (own === undefined) return ofTenant;
  return ofTenant === 0 ? own : Math.min(ofTenant, own);
}
