/**
 * How often a request is sent, and when. Only a route's own `retry` repeats what a backend may have
 * begun to do, but for safe methods.
 */

import {
  boundedRetry,
  DEFAULT_RETRY_BACKOFF_MS,
  MAX_RETRY_TIME_MS,
  RETRY_BACKOFF_GROWTH,
} from "../../../../plan/retry-limits.ts";
import type { ForwardAction, RequestMatch } from "../../../../plan/rule.ts";
import { headerMatch, retryPolicy } from "../../messages/route.ts";
import type * as proto from "../../wire/proto.ts";
import type { Message } from "../../wire/protobuf.ts";
import { RETRY_ON_HEADER } from "../names.ts";

/** Nothing of the request has been sent: it goes on to another endpoint, three in all. */
const UNSENT = "connect-failure,refused-stream";
const IMPLICIT_RETRIES = 2;

/** Of every scope, for rules that say nothing about it. */
export const defaultRetry: Message<proto.RetryPolicy> = retryPolicy({
  on: UNSENT,
  retries: IMPLICIT_RETRIES,
  codes: [],
});

export interface RuleRetry {
  /** Undefined: the scope's. */
  readonly policy: Message<proto.RetryPolicy> | undefined;
  /** Fields that would make the router retry more than the rule says. */
  readonly without: readonly string[];
}

export function ruleRetry({ retry, timeouts }: ForwardAction): RuleRetry {
  const { backendRequestMs: perTryTimeoutMs } = timeouts;
  if (retry === undefined) {
    if (perTryTimeoutMs === undefined) return { policy: undefined, without: [] };
    const policy = retryPolicy({ on: UNSENT, retries: IMPLICIT_RETRIES, codes: [], perTryTimeoutMs });
    // To Envoy an attempt that takes too long is a reset as well.
    return { policy, without: [RETRY_ON_HEADER] };
  }
  const { attempts, codes, backoffMs = DEFAULT_RETRY_BACKOFF_MS } = boundedRetry(retry);
  // Envoy has no limit for all attempts together: the pauses between them are kept below it.
  const longestPauseMs = Math.floor(MAX_RETRY_TIME_MS / Math.max(attempts, 1));
  const pauseMs = Math.min(backoffMs, longestPauseMs);
  const policy = retryPolicy({
    on: `${UNSENT},reset,retriable-status-codes`,
    retries: attempts,
    perTryTimeoutMs,
    codes,
    backoff: { firstMs: pauseMs, longestMs: Math.min(pauseMs * RETRY_BACKOFF_GROWTH, longestPauseMs) },
  });
  return { policy, without: [] };
}

/** What a rule does to requests that match these headers besides. */
export interface MethodVariant {
  readonly action: ForwardAction;
  readonly headers: readonly Message<proto.HeaderMatcher>[];
}

/**
 * A rule with retries of some methods is two kinds of routes, the first of them for these methods.
 * Envoy could leave single methods out of a policy, but would then leave them without their next
 * endpoint, too.
 */
export function methodVariants(action: ForwardAction, { method }: RequestMatch): readonly MethodVariant[] {
  const { retry, ...others } = action;
  if (retry?.methods === undefined) return [{ action, headers: [] }];
  const { methods, ...ofAll } = retry;
  const named = { ...others, retry: ofAll };
  if (method !== undefined) return [{ action: methods.includes(method) ? named : others, headers: [] }];
  const listed = headerMatch({ name: ":method", type: "regex", value: methods.join("|") });
  return [
    { action: named, headers: [listed] },
    { action: others, headers: [] },
  ];
}
