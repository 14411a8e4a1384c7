/** A token bucket: so many at once, then one in every `refillMs`. */
export class WriteTokens {
  readonly #size: number;
  readonly #refillMs: number;
  #tokens: number;
  #since: number;

  constructor(size: number, refillMs: number, now: number) {
    this.#size = size;
    this.#refillMs = refillMs;
    this.#tokens = size;
    this.#since = now;
  }

  take(now: number): boolean {
    this.#tokens = Math.min(this.#size, this.#tokens + (now - this.#since) / this.#refillMs);
    this.#since = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
