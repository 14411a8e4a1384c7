import type { RetryPolicy } from "./rule.ts";

/**
 * Bounds of retries, the same on every data plane. A route's author writes the number of attempts
 * and the backoff; the backend behind it, and the thread that it shares with other tenants, pay for
 * them.
 */

/**
 * Without `HTTPRouteRetry.attempts`, which leaves the number to the implementation; Envoy's
 * default.
 */
export const DEFAULT_RETRY_ATTEMPTS = 1;
/** `HTTPRouteRetry.attempts` beyond this count as this many. */
export const MAX_RETRY_ATTEMPTS = 10;
/**
 * `HTTPRouteRetry.backoff` below this counts as this much; Envoy refuses a whole scope with a
 * backoff of 0.
 */
export const MIN_RETRY_BACKOFF_MS = 10;
/** Without a backoff of the route's own; Envoy's default. */
export const DEFAULT_RETRY_BACKOFF_MS = 25;
/** The backoff doubles with every retry up to this many times its first value, as Envoy does it. */
export const RETRY_BACKOFF_GROWTH = 10;
/** No retry begins later than this after the request did. */
export const MAX_RETRY_TIME_MS = 60_000;
/** Retries of one backend at a time, as a share of its requests in flight ... */
export const RETRY_BUDGET_PERCENT = 20;
/** ... and how many there may always be: a backend with one request at a time has retries, too. */
export const MIN_CONCURRENT_RETRIES = 3;

/** What of a rule's retry policy is for requests of a method. */
export function retryOfMethod(retry: RetryPolicy | undefined, method: string): RetryPolicy | undefined {
  return retry?.methods?.includes(method) === false ? undefined : retry;
}

/** A route's retry policy, within the limits above. */
export function boundedRetry(wanted: RetryPolicy): RetryPolicy {
  const { attempts, backoffMs } = wanted;
  return {
    ...wanted,
    attempts: Math.min(attempts, MAX_RETRY_ATTEMPTS),
    ...(backoffMs === undefined ? {} : { backoffMs: Math.max(backoffMs, MIN_RETRY_BACKOFF_MS) }),
  };
}
