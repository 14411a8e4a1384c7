import type { ThrottleTiming } from "./write-throttle.ts";

export interface StatusTiming extends ThrottleTiming {
  readonly concurrency: number;
  /** How long changes of one object are always gathered. */
  readonly settleMs: number;
  /** How long a change waits that is not final, or that is only a count. */
  readonly gatherMs: number;
  /**
   * How many sets at once get their first status as soon as it is final. In a larger burst first
   * statuses are gathered.
   */
  readonly firstBurst: number;
  readonly firstRefillMs: number;
  readonly firstBackoffMs: number;
  readonly mostBackoffMs: number;
  /** How long a new leader does not take back what its predecessor wrote. */
  readonly graceMs: number;
  /**
   * How long the watch may show an older object than the live object, before it is read again.
   */
  readonly doubtMs: number;
}

export const STATUS_TIMING: StatusTiming = {
  concurrency: 8,
  settleMs: 10,
  gatherMs: 1_000,
  firstBurst: 20,
  firstRefillMs: 500,
  intervalMs: 200,
  firstBackoffMs: 500,
  mostBackoffMs: 60_000,
  graceMs: 15_000,
  doubtMs: 10_000,
  contestedMs: 1_000,
  mostContestedMs: 300_000,
};
