const WINDOW_MS = 10_000;

/** How often something may happen within ten seconds; 0 is without bound. */
export class Allowance {
  readonly #limit: number;
  #windowEnd = 0;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Gives back what was spent: whoever does something of use may do more that is of none. */
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
