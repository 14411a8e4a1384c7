/** `node:timers/promises` of the world. */
import { theWorld } from "./world.ts";

export function setTimeout<T>(
  ms = 0,
  value?: T,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(signal?.reason);
    if (signal?.aborted) return fail();
    const event = theWorld().after(ms, () => {
      signal?.removeEventListener("abort", end);
      resolve(value);
    });
    const end = (): void => {
      event.isCancelled = true;
      fail();
    };
    signal?.addEventListener("abort", end, { once: true });
  });
}

export function setImmediate<T>(value?: T): Promise<T | undefined> {
  return setTimeout(0, value);
}
