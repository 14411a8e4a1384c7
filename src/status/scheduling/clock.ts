/** The time as the status writer sees it. Tests bring a clock of their own. */
export interface Clock {
  /** Milliseconds that never go back. */
  now(): number;
  /** The time of day. */
  date(): Date;
  /** Calls back once, after so many milliseconds, unless the returned function is called before. */
  after(ms: number, callback: () => void): () => void;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  date: () => new Date(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Waits for so long, or until the signal is aborted. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    signal.addEventListener("abort", end, { once: true });
  });
}
