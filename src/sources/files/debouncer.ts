/** Turns a burst of events into one wake-up, after the burst has ended. */
export class Debouncer {
  readonly #debounceMs: number;
  readonly #signal: AbortSignal;
  #pending = false;
  #onEvent: (() => void) | undefined;

  constructor(debounceMs: number, signal: AbortSignal) {
    this.#debounceMs = debounceMs;
    this.#signal = signal;
  }

  notify(): void {
    this.#pending = true;
    this.#onEvent?.();
  }

  /** Resolves after a burst of events, after `atMostMs`, or when the signal is aborted. */
  wait(atMostMs: number): Promise<void> {
    return new Promise((resolve) => {
      // Bounded: otherwise a file that is written all the time would delay changes for ever.
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
