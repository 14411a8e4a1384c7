/**
 * `retries` of a TrafficPolicy. A default holds for rules that say nothing of retries; it repeats
 * safe methods alone, unless it names others (RFC 9110, 9.2.2). An override demands no retries: it
 * is the most that a rule may have of them, whoever asks for them.
 */
import type { TrafficSettings } from "../../../api/traffic-policy.ts";
import {
  boundedRetry,
  DEFAULT_RETRY_BACKOFF_MS,
  MAX_RETRY_ATTEMPTS,
  MIN_RETRY_BACKOFF_MS,
} from "../../../plan/retry-limits.ts";
import type { ForwardAction, RetryPolicy } from "../../../plan/rule.ts";
import { milliseconds } from "../../foundation/durations.ts";

export interface RetrySetting {
  readonly type: "retries";
  readonly attempts: number;
  readonly codes?: readonly number[];
  readonly methods?: readonly string[];
  readonly backoffMs?: number;
}

export const SAFE_METHODS: readonly string[] = ["GET", "HEAD", "OPTIONS"];
const METHODS: readonly string[] = [...SAFE_METHODS, "PUT", "DELETE", "POST", "PATCH"];
const LONGEST_BACKOFF_MS = 60_000;

export function readRetries(
  written: NonNullable<TrafficSettings["retries"]>,
): RetrySetting | { readonly problem: string } {
  const { attempts, codes, methods, backoff } = written;
  if (!isWhole(attempts, 0, MAX_RETRY_ATTEMPTS))
    return { problem: `attempts: ${attempts} is not between 0 and ${MAX_RETRY_ATTEMPTS}` };
  const wrongCode = codes?.find((code) => !isWhole(code, 400, 599));
  if (wrongCode !== undefined) return { problem: `codes: ${wrongCode} is not between 400 and 599` };
  const wrongMethod = methods?.find((method) => !METHODS.includes(method));
  if (wrongMethod !== undefined)
    return { problem: `methods: ${JSON.stringify(wrongMethod)} is not one of ${METHODS.join(", ")}` };
  const backoffMs = backoff === undefined ? undefined : milliseconds(backoff);
  if (backoffMs !== undefined && !isWhole(backoffMs, MIN_RETRY_BACKOFF_MS, LONGEST_BACKOFF_MS))
    return { problem: `backoff: ${backoff} is not between ${MIN_RETRY_BACKOFF_MS}ms and 1m` };
  return {
    type: "retries",
    attempts,
    ...(codes === undefined ? {} : { codes }),
    ...(methods === undefined ? {} : { methods }),
    ...(backoffMs === undefined ? {} : { backoffMs }),
  };
}

function isWhole(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

export function withRetries(
  action: ForwardAction,
  setting: RetrySetting,
  isOverride: boolean,
): ForwardAction {
  const { retry: own, ...rest } = action;
  if (!isOverride && own !== undefined) return action;
  const retry = isOverride ? own && cappedRetry(own, setting) : proposed(setting);
  return retry === undefined ? rest : { ...rest, retry };
}

function proposed(setting: RetrySetting): RetryPolicy | undefined {
  const { attempts, codes = [], methods = SAFE_METHODS, backoffMs } = setting;
  if (attempts === 0) return undefined;
  return boundedRetry({ attempts, codes, methods, ...(backoffMs === undefined ? {} : { backoffMs }) });
}

/** Undefined: nothing is left of it. */
function cappedRetry(own: RetryPolicy, cap: RetrySetting): RetryPolicy | undefined {
  const { backoffMs = DEFAULT_RETRY_BACKOFF_MS } = own;
  const methods = common(own.methods, cap.methods);
  const attempts = Math.min(own.attempts, cap.attempts);
  if (attempts === 0 || methods?.length === 0) return undefined;
  return {
    ...own,
    attempts,
    codes: common(own.codes, cap.codes) ?? [],
    ...(methods === undefined ? {} : { methods }),
    ...(cap.backoffMs === undefined ? {} : { backoffMs: Math.max(backoffMs, cap.backoffMs) }),
  };
}

/** Absent stands for all. */
function common<Value>(
  own: readonly Value[] | undefined,
  allowed: readonly Value[] | undefined,
): readonly Value[] | undefined {
  if (own === undefined || allowed === undefined) return own ?? allowed;
  return own.filter((each) => allowed.includes(each));
}
