/**
 * What one tenant may have at a time at one pod, the same on every data plane as far as each can
 * hold it (docs/decisions/0022). The tenant is the object that carries the listener. A Gateway's
 * own listeners are the platform's, and have no limits.
 */

import type { ListenerItem } from "./plan.ts";

export interface TenantLimits {
  /** Client connections; 0: no limit, here and below. */
  readonly connections: number;
  /** Requests in flight; an upgraded connection is one for as long as it lasts. */
  readonly requests: number;
  /** Connections to one backend, whoever's requests they carry. */
  readonly backendConnections: number;
  /** Bytes of bodies that wait in memory for the side that is to take them. */
  readonly bufferedBytes: number;
}

/**
 * A pod has room for 20,000 connections: it takes several tenants at their limits to fill it. A
 * request whose client or backend is slow holds about 128 KiB: a thousand of them fit. Connections
 * per backend are Envoy's default.
 */
export const DEFAULT_TENANT_LIMITS: TenantLimits = {
  connections: 5_000,
  requests: 2_000,
  backendConnections: 1_024,
  bufferedBytes: 128 * 1024 * 1024,
};

/** Limits that are not set have their default. */
export function tenantLimits(said: Partial<TenantLimits> | undefined): TenantLimits {
  return {
    connections: said?.connections ?? DEFAULT_TENANT_LIMITS.connections,
    requests: said?.requests ?? DEFAULT_TENANT_LIMITS.requests,
    backendConnections: said?.backendConnections ?? DEFAULT_TENANT_LIMITS.backendConnections,
    bufferedBytes: said?.bufferedBytes ?? DEFAULT_TENANT_LIMITS.bufferedBytes,
  };
}

/** Whether both have the same effect on clusters of Envoy, defaults included. */
export function sameLimits(one: TenantLimits | undefined, other: TenantLimits | undefined): boolean {
  const a = tenantLimits(one);
  const b = tenantLimits(other);
  return (
    a.connections === b.connections &&
    a.requests === b.requests &&
    a.backendConnections === b.backendConnections
  );
}

/** Whether the Gateway itself carries the listener. A child Gateway is a tenant of its parent. */
export function isOfPlatform({ owner, gateway }: Pick<ListenerItem, "owner" | "gateway">): boolean {
  return owner.kind === "Gateway" && `${owner.namespace}/${owner.name}` === gateway;
}
