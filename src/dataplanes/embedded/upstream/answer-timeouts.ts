import type { Timeouts } from "../../../plan/rule.ts";
import type { Limits } from "../limits/options.ts";
import type { AnswerTimeouts } from "./upstream.ts";

const endless: AnswerTimeouts = { responseMs: 0, idleMs: 0 };

/**
 * How long a backend may take. A route or policy that says anything about it has thought of it: its
 * timeouts then hold alone, and one of `0s` is off, as the API says (HTTPRouteTimeouts).
 */
export function answerTimeouts(
  { requestMs, backendRequestMs, idleMs, unbounded }: Timeouts,
  limits: Limits,
): AnswerTimeouts {
  const said = requestMs ?? backendRequestMs ?? idleMs;
  if (said !== undefined || unbounded === true) return endless;
  return defaultTimeouts(limits);
}

export function defaultTimeouts(limits: Limits): AnswerTimeouts {
  return { responseMs: limits.backendResponseTimeoutMs, idleMs: limits.backendIdleTimeoutMs };
}
