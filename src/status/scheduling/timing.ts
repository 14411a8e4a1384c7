import type { ThrottleTiming } from "./write-throttle.ts";

export interface StatusTiming extends ThrottleTiming {
  readonly concurrency: number;
  /** How long news of one object are gathered in any case. */
  readonly settleMs: number;
  /** For how long a change waits that is not final, or a count alone. */
  readonly gatherMs: number;
  /**
   * So many sets at once get their first status as soon as it is final; in a greater burst it is
   * gathered.
   */
  readonly firstBurst: number;
  readonly firstRefillMs: number;
  readonly firstBackoffMs: number;
  readonly mostBackoffMs: number;
  /** For so long after a leader has begun it does not unsay what it may only not know yet. */
  readonly graceMs: number;
  /**
   * For so long the watch may show an older object than the one we know, before that one is read
   * again.
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
