import { setFlagsFromString } from "node:v8";

export const FLAG = "--no-allocation-site-pretenuring";

/**
 * Keeps V8 from putting the objects of requests among those that live for long. It learns where
 * long-lived objects are made and then makes the next ones of that place long-lived at once; under
 * load it learns this of requests as well, because a few are always under way. Each of them then
 * keeps whatever it points to until the next full collection: 12 MB of every 54 MB survived, and a
 * collection took 20 ms instead of 2.
 *
 * For all threads of the process, and of use only before they serve.
 */
export function keepRequestsShortLived(): void {
  setFlagsFromString(FLAG);
}
