export type Eventually = <T>(check: () => T | Promise<T>, seconds?: number) => Promise<T>;

/**
 * Waits for what must come true, looking again and again; its last failure is the error when it
 * does not.
 */
export function eventuallyWithin(usualSeconds: number, everyMs: number): Eventually {
  return async (check, seconds = usualSeconds) => {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      try {
        return await check();
      } catch (error) {
        if (Date.now() > end) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
}

/**
 * Times in Kubernetes have whole seconds: what is made before and after this has different ones.
 */
export function nextSecond(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_100));
}
