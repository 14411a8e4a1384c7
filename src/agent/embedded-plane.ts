/**
 * The pod's own program serves: told to end, it lets its endpoint leave the Services, then drains.
 */
import { createEmbeddedDataPlane } from "../dataplanes/embedded/embedded-data-plane.ts";
import type { EmbeddedOptions } from "../dataplanes/embedded/limits/options.ts";
import type { TrafficCounts } from "../dataplanes/traffic/traffic-counts.ts";
import { LEAVE_MS, type PodPlane, waitFor } from "./pod-plane.ts";

export interface EmbeddedPodOptions
  extends Pick<EmbeddedOptions, "onRequestEnd" | "onlySampled" | "tracing"> {
  readonly workers: number;
  readonly drainSeconds: number;
  /** Absent: nothing is counted. */
  readonly traffic?: TrafficCounts | undefined;
}

export function embeddedPodPlane({ drainSeconds, ...options }: EmbeddedPodOptions): PodPlane {
  const dataPlane = createEmbeddedDataPlane({ bind: { address: "::" }, ...options });
  let leaving = false;
  return {
    dataPlane,
    begin: () => {},
    get isReady() {
      return !leaving;
    },
    async close() {
      leaving = true;
      await waitFor(LEAVE_MS);
      await dataPlane.close({ graceMs: drainSeconds * 1000 });
    },
  };
}
