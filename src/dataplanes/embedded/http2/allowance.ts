const WINDOW_MS = 10_000;

/** A limit of events within ten seconds; 0: no limit. */
export class Allowance {
  readonly #limit: number;
  #windowEnd = 0;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Allows more events, because the peer did something useful. */
  earn(times: number): void {
    this.#spent = Math.max(0, this.#spent - times);
  }

  spend(): boolean {
    if (this.#limit === 0) return true;
    const now = Date.now();
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + WINDOW_MS;
      this.#spent = 0;
    }
    return ++this.#spent <= this.#limit;
  }
}
