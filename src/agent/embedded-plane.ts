/**
 * The pod's own program serves: told to end, it lets its endpoint leave the Services, then drains.
 */
import { createEmbeddedDataPlane } from "../dataplanes/embedded/embedded-data-plane.ts";
import type { RequestRecord } from "../dataplanes/request-record.ts";
import { LEAVE_MS, type PodPlane, pause } from "./pod-plane.ts";

export interface EmbeddedPodOptions {
  readonly workers: number;
  readonly drainSeconds: number;
  readonly onRequestEnd?: (record: RequestRecord) => void;
}

export function embeddedPodPlane({ workers, drainSeconds, onRequestEnd }: EmbeddedPodOptions): PodPlane {
  const dataPlane = createEmbeddedDataPlane({
    bind: { address: "::" },
    workers,
    ...(onRequestEnd === undefined ? {} : { onRequestEnd }),
  });
  let leaving = false;
  return {
    dataPlane,
    begin: () => {},
    get isReady() {
      return !leaving;
    },
    async close() {
      leaving = true;
      await pause(LEAVE_MS);
      await dataPlane.close({ graceMs: drainSeconds * 1000 });
    },
  };
}
