/** A rule without one of its parts, to find the part that Envoy rejects. */

import type { Filters, ForwardAction, Rule } from "../../../plan/rule.ts";

export interface RulePart {
  /** As the route's author knows it, below `spec`. */
  readonly field: string;
  /** Whether it decides which requests the rule takes. */
  readonly isMatch: boolean;
  /** The rule without it. */
  readonly without: Rule;
}

const FILTERS: readonly (readonly [keyof Filters, string])[] = [
  ["requestHeaders", "RequestHeaderModifier"],
  ["responseHeaders", "ResponseHeaderModifier"],
  ["rewrite", "URLRewrite"],
  ["mirrors", "RequestMirror"],
  ["cors", "CORS"],
];

export function rulePartsOf(rule: Rule): readonly RulePart[] {
  const { match, action, origin } = rule;
  const place = `rules[${origin.rule}]`;
  const parts: RulePart[] = [];
  const matchPart = (field: string, without: Partial<Rule["match"]>): void => {
    const at = `${place}.matches[${origin.match}].${field}`;
    parts.push({ field: at, isMatch: true, without: { ...rule, match: { ...match, ...without } } });
  };
  const actionPart = (field: string, without: Rule["action"]): void => {
    parts.push({ field: `${place}.${field}`, isMatch: false, without: { ...rule, action: without } });
  };
  if (match.path !== undefined) {
    const { path: _path, ...rest } = match;
    const field = origin.kind === "GRPCRoute" ? "method" : "path";
    parts.push({
      field: `${place}.matches[${origin.match}].${field}`,
      isMatch: true,
      without: { ...rule, match: rest },
    });
  }
  if (match.method !== undefined) matchPart("method", { method: "GET" });
  if (match.headers.length > 0) matchPart("headers", { headers: [] });
  if (match.query.length > 0) matchPart("queryParams", { query: [] });
  if (rule.guards !== undefined)
    parts.push({ field: `a TrafficPolicy of ${place}`, isMatch: false, without: unguarded(rule) });
  if (action.type === "respond") return parts;
  for (const [key, type] of FILTERS) {
    if (action.filters[key] === undefined) continue;
    const { [key]: _left, ...filters } = action.filters;
    actionPart(`filters (${type})`, { ...action, filters });
  }
  if (action.type === "forward" && action.compression !== undefined) {
    const { compression: _left, ...rest } = action;
    parts.push({
      field: `a TrafficPolicy of ${place}`,
      isMatch: false,
      without: { ...rule, action: rest },
    });
  }
  if (action.type === "forward") forwardParts(action, actionPart);
  else actionPart("filters (RequestRedirect)", { type: "respond", status: 500, reason: "" });
  return parts;
}

function forwardParts(action: ForwardAction, part: (field: string, without: ForwardAction) => void): void {
  const { retry, timeouts, backends } = action;
  if (retry !== undefined) {
    const { retry: _retry, ...rest } = action;
    part("retry", rest);
  }
  if (timeouts.requestMs !== undefined || timeouts.backendRequestMs !== undefined)
    part("timeouts", { ...action, timeouts: {} });
  if (backends.some(({ filters }) => Object.keys(filters).length > 0))
    part("backendRefs.filters", {
      ...action,
      backends: backends.map((backend) => ({ ...backend, filters: {} })),
    });
}

/** Only ever tried or compared, or as an answer that lets nothing pass. */
export function unguarded({ guards: _guards, ...rule }: Rule): Rule {
  return rule;
}

/** The same requests, answered with 500. Its guards may be what is refused. */
export function answering500(rule: Rule): Rule {
  const reason = "the data plane refuses the rule";
  return { ...unguarded(rule), action: { type: "respond", status: 500, reason } };
}
