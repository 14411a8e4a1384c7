import type { DataPlane } from "../dataplanes/dataplane.ts";

/** The data plane of a pod, and how it starts and stops. */
export interface PodPlane {
  readonly dataPlane: DataPlane;
  /**
   * There is a plan to serve: one from before a restart, or all of the controller's. Called once.
   */
  begin(): void;
  /** Whether clients may come, given that there is a plan. */
  readonly isReady: boolean;
  /**
   * Drains, for a preStop request of the kubelet. Resolves when no request is in flight. Only for
   * data planes that serve in another container.
   */
  drain?(): Promise<void>;
  /** The agent has received SIGTERM. */
  close(): Promise<void>;
}

/** Time for a pod's endpoint to leave every Service before the pod stops accepting. */
export const LEAVE_MS = 3_000;

export function waitFor(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
