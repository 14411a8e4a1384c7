import type { Deadlines } from "../limits/deadlines.ts";
import type { Limits } from "../limits/options.ts";

/** What pools of all kinds are made with. */
export interface PoolParts {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly budget: ConnectionBudget;
}

/** A pool of one endpoint of the backend. */
export interface BudgetedPool {
  /** There may be room for another connection. */
  onRoom(): void;
  /** Closes an idle connection; false: there is none. */
  closeIdle(): boolean;
}

/**
 * How many connections of this thread one backend may have, over all of its endpoints. A connection
 * counts until its socket is closed, also after it was handed over to a WebSocket. A pool that gets
 * none waits, and idle connections of the others make room.
 */
export class ConnectionBudget {
  readonly #limit: () => number;
  readonly #pools: Set<BudgetedPool> = new Set();
  readonly #waiting: Set<BudgetedPool> = new Set();
  #open = 0;

  /** 0: no limit. */
  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get unused(): boolean {
    return this.#open === 0 && this.#pools.size === 0 && this.#waiting.size === 0;
  }

  join(pool: BudgetedPool): void {
    this.#pools.add(pool);
  }

  leave(pool: BudgetedPool): void {
    this.#pools.delete(pool);
  }

  /** False: the pool is told when there is room. */
  take(pool: BudgetedPool): boolean {
    const limit = this.#limit();
    if (limit === 0 || this.#open < limit) {
      this.#open++;
      return true;
    }
    this.#waiting.add(pool);
    for (const other of this.#pools) if (other !== pool && other.closeIdle()) break;
    return false;
  }

  giveBack(): void {
    this.#open--;
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const pool of waiting) pool.onRoom();
  }
}
