import type { ItemId } from "../../../plan/plan.ts";
import type { RequestRecord } from "../../request-record.ts";
import type { SamplingSettings } from "../../telemetry/telemetry-settings.ts";
import type { TrafficNumbers } from "../../traffic/traffic-numbers.ts";
import type { BucketMemory } from "../guards/rate-buckets.ts";
import type { Limits, TrustedFront } from "../limits/options.ts";
import type { PortOutcome } from "../ports/ports.ts";
import type { TransferDelta } from "./plan-transfer.ts";

/** What a worker is started with. */
export interface WorkerSetup {
  readonly address: string;
  readonly limits: Limits;
  readonly trustedHops: TrustedFront;
  readonly ticketSecret: Uint8Array;
  /** Shared, not copied: a limit of requests counts those of all threads. */
  readonly buckets: BucketMemory;
  /** How many there are. */
  readonly threads: number;
  readonly wantsRecords: boolean;
  /** Whether records of requests that are not sampled are left out. */
  readonly onlySampled: boolean;
  readonly tracing: SamplingSettings | undefined;
  readonly wantsTraffic: boolean;
}

export type ToWorker =
  /** `bound`: where the ports of the delta are really opened. */
  | {
      readonly type: "apply";
      readonly turn: number;
      readonly delta: TransferDelta;
      readonly bound: ReadonlyMap<ItemId, number>;
    }
  | { readonly type: "close"; readonly graceMs: number };

export type FromWorker =
  | { readonly type: "applied"; readonly turn: number }
  | { readonly type: "port"; readonly port: ItemId; readonly outcome: PortOutcome }
  | { readonly type: "records"; readonly records: readonly RequestRecord[] }
  /** What was counted since the last message, and the connections that are open. */
  | { readonly type: "traffic"; readonly numbers: TrafficNumbers; readonly open: number };
