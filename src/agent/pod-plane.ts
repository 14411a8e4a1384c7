import type { DataPlane } from "../dataplanes/dataplane.ts";

/** What serves in a pod, and how it is begun and ended there. */
export interface PodPlane {
  readonly dataPlane: DataPlane;
  /**
   * There is a plan to serve: one from before a restart, or all of the controller's. Called once.
   */
  begin(): void;
  /** Whether clients may come, given that there is a plan. */
  readonly isReady: boolean;
  /**
   * Asked for by the kubelet before it stops the container that serves; ends when nothing is under
   * way any more. Only of planes that do not serve themselves.
   */
  drain?(): Promise<void>;
  /** The pod's own program has been told to end. */
  close(): Promise<void>;
}

/** Time for a pod's endpoint to leave every Service before the pod stops accepting. */
export const LEAVE_MS = 3_000;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
