import { setTimeout as delay } from "node:timers/promises";

export interface BackoffLimits {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Exponential, with jitter: many clients that lost one server must not come back in step. */
export class Backoff {
  readonly #limits: BackoffLimits;
  #failures = 0;

  constructor(limits: BackoffLimits) {
    this.#limits = limits;
  }

  /** The wait after one more failure: between half and the whole of the current step. */
  next(atLeastMs = 0): number {
    const step = Math.min(this.#limits.firstMs * 2 ** this.#failures, this.#limits.mostMs);
    this.#failures = Math.min(this.#failures + 1, 30);
    return Math.max(step * (0.5 + Math.random() / 2), atLeastMs);
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Waits; false when the signal ended the wait. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
