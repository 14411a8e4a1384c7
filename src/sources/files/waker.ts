/** Turns bursts of events into single wake-ups: one, when it has been quiet for a while. */
export class Waker {
  readonly #debounceMs: number;
  readonly #signal: AbortSignal;
  #pending = false;
  #onEvent: (() => void) | undefined;

  constructor(debounceMs: number, signal: AbortSignal) {
    this.#debounceMs = debounceMs;
    this.#signal = signal;
  }

  wake(): void {
    this.#pending = true;
    this.#onEvent?.();
  }

  /** Until events came and ceased, the time is over, or the signal is aborted. */
  wait(atMostMs: number): Promise<void> {
    return new Promise((resolve) => {
      // Without an end to the quiet that is waited for, steady writing would keep changes back for
      // ever.
      const latest = this.#debounceMs * 10;
      let quiet: NodeJS.Timeout | undefined;
      let limit: NodeJS.Timeout | undefined;
      const finish = (): void => {
        for (const timer of [quiet, limit, poll]) clearTimeout(timer);
        this.#signal.removeEventListener("abort", finish);
        this.#onEvent = undefined;
        this.#pending = false;
        resolve();
      };
      const poll = setTimeout(finish, atMostMs);
      this.#onEvent = () => {
        clearTimeout(quiet);
        quiet = setTimeout(finish, this.#debounceMs);
        limit ??= setTimeout(finish, latest);
      };
      this.#signal.addEventListener("abort", finish);
      if (this.#signal.aborted) finish();
      else if (this.#pending) this.#onEvent();
    });
  }
}
