/**
 * Names of secrets that clients have thought up: under a wildcard, in capitals, or belonging to nobody. Their number is bounded by letting go
 * of the oldest, and their pace by answering only so many per second.
 */
export class BorrowedNames {
  readonly #capacity: number;
  readonly #perSecond: number;
  /** In the order of their arrival; true once the first answer has been given. */
  readonly #names: Map<string, boolean> = new Map();
  #tokens: number;
  #refilled: number = performance.now();

  constructor(capacity: number, perSecond: number) {
    this.#capacity = capacity;
    this.#perSecond = perSecond;
    this.#tokens = perSecond;
  }

  get size(): number {
    return this.#names.size;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  names(): Iterable<string> {
    return this.#names.keys();
  }

  add(name: string, answered: boolean): void {
    this.#names.delete(name);
    this.#names.set(name, answered);
  }

  delete(name: string): void {
    this.#names.delete(name);
  }

  /** Configured names always may, and so may what has been answered before. */
  mayAnswer(name: string): boolean {
    if (this.#names.get(name) !== false) return true;
    const now = performance.now();
    this.#tokens = Math.min(
      this.#perSecond,
      this.#tokens + ((now - this.#refilled) * this.#perSecond) / 1000,
    );
    this.#refilled = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    this.#names.set(name, true);
    return true;
  }

  *excess(): Generator<string, void, undefined> {
    let over = this.#names.size - this.#capacity;
    if (over <= 0) return;
    for (const [name, answered] of this.#names) {
      if (!answered) continue;
      if (over-- <= 0) return;
      yield name;
    }
  }
}
