import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/status/scheduling/clock.ts";

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to go on. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  /** In the order in which they were set. */
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  date(): Date {
    return new Date(Date.UTC(2026, 0, 1) + this.#now);
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(ms, 0), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /**
   * Lets so much time pass: every timer that is due rings at its own time, and what it causes
   * happens then.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#timers.delete(next);
      this.#now = next.at;
      next.callback();
      await settled();
    }
    this.#now = end;
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}

/** All that can go on without time passing has gone on; a worker of the writer may yield once. */
async function settled(): Promise<void> {
  for (let round = 0; round < 3; round++) await setImmediate();
}
