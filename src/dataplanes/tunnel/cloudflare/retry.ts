/** Waiting and trying again, within bounds and never in step with others. */
import { setTimeout as sleep } from "node:timers/promises";

export interface CallRetries {
  /** Tries in all, the first one included. */
  readonly attempts: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Waits that the other side asks for are obeyed up to here; beyond it we give up for now. */
  readonly maxAskedMs: number;
}

export const DEFAULT_RETRY: CallRetries = {
  attempts: 5,
  firstDelayMs: 500,
  maxDelayMs: 8_000,
  maxAskedMs: 60_000,
};

/** What a failure means for the next try; undefined: trying again will not help. */
export type Judge = (error: unknown) => { readonly askedMs?: number } | undefined;

export async function retrying<T>(
  task: () => Promise<T>,
  judge: Judge,
  { policy, signal }: { readonly policy: CallRetries; readonly signal: AbortSignal },
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await task();
    } catch (error) {
      const verdict = judge(error);
      if (verdict === undefined || attempt >= policy.attempts || signal.aborted) throw error;
      if ((verdict.askedMs ?? 0) > policy.maxAskedMs) throw error;
      const own = backoffMs(attempt, policy);
      // What was asked for is a minimum: many clients that were told the same second must not come
      // back in it.
      await sleep((verdict.askedMs ?? 0) + own, undefined, { signal });
    }
  }
}

/** Exponential, with as much chance as delay: between half of it and all. */
export function backoffMs(
  attempt: number,
  { firstDelayMs, maxDelayMs }: Pick<CallRetries, "firstDelayMs" | "maxDelayMs">,
): number {
  const whole = Math.min(firstDelayMs * 2 ** (attempt - 1), maxDelayMs);
  return whole * (0.5 + Math.random() / 2);
}
