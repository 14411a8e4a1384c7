import { MIN_CONCURRENT_RETRIES, RETRY_BUDGET_PERCENT } from "../../../plan/retry-limits.ts";

/**
 * Limits how many requests of one backend are retried at a time. So a failing backend gets a fifth
 * more requests, and not a multiple of them.
 */
export class RetryBudget {
  #active = 0;
  #retrying = 0;

  get idle(): boolean {
    return this.#active === 0;
  }

  /** A request of this backend begins. */
  begin(): void {
    this.#active++;
  }

  end(): void {
    this.#active--;
  }

  /** Whether one more may be retried now; it counts until it is given back. */
  take(): boolean {
    const limit = Math.max(MIN_CONCURRENT_RETRIES, (this.#active * RETRY_BUDGET_PERCENT) / 100);
    if (this.#retrying >= limit) return false;
    this.#retrying++;
    return true;
  }

  giveBack(): void {
    this.#retrying--;
  }
}
