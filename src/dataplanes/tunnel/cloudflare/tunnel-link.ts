import type { TunnelProblem } from "./api-failure.ts";
import type { Origin } from "./tunnel-configuration.ts";

/**
 * What brings requests of a Gateway's tunnel to an origin: tunnels with connectors of our own, or
 * whatever stands in for them.
 */
export interface TunnelLink {
  /** The Gateway's tunnel shall lead there; said again when the origin changes. */
  lead(gateway: string, origin: Origin): void;
  /** The Gateway is not served any more; its tunnel, name and address stay. */
  release(gateway: string): void;
  /** Called with every change, and at once with what is known. One handler. */
  onState(handler: (gateway: string, state: TunnelState) => void): void;
  close(): Promise<void>;
}

export interface TunnelState {
  /** A host name; absent while there is no tunnel. */
  readonly address?: string;
  /** Connections of connectors to the edge. */
  readonly connections: number;
  /**
   * Why there is no tunnel, or nothing leads through it: for the Gateway's owner, not for tenants.
   */
  readonly problem?: TunnelProblem;
}
