/**
 * Which rule of one host table goes first (HTTPRoute.spec.hostnames, HTTPRouteRule.matches,
 * GRPCRouteRule.matches), each criterion with its words. The engine orders by this list, and
 * `explain` gives its reasons from it, so that the two cannot differ. Regular expressions have no
 * place in the API's order; they come between exact paths and prefixes. Where all of these are
 * equal, the older route goes first, then `namespace/name`, then the order within the route.
 */
import { compareSpecificity } from "./hostname.ts";
import type { RequestMatch, Rule } from "./rule.ts";

/** A rule, and the hostname that its route asked for. */
export interface AskedRule {
  readonly rule: Rule;
  readonly asked: string;
}

export interface Criterion {
  /** Negative when `a` goes first. */
  readonly compare: (a: AskedRule, b: AskedRule) => number;
  /** Of the one that goes first: "which …". */
  readonly words: (first: Rule) => string;
}

const PATH_ORDER = { exact: 3, regex: 2, prefix: 1 } as const;

const PATH_WORDS = {
  exact: "matches the path exactly",
  regex: "matches the path by a regular expression, which goes before a prefix",
  prefix: "matches the path",
} as const;

export const RULE_CRITERIA: readonly Criterion[] = [
  {
    compare: (a, b) => compareSpecificity(a.asked, b.asked) || b.asked.length - a.asked.length,
    words: () => "has the more specific hostname in its route",
  },
  {
    compare: (a, b) => pathOrder(b.rule.match) - pathOrder(a.rule.match),
    words: ({ match }) => (match.path === undefined ? "matches the path" : PATH_WORDS[match.path.type]),
  },
  {
    compare: (a, b) => pathLength(b.rule.match) - pathLength(a.rule.match),
    words: () => "matches the longer path",
  },
  {
    compare: (a, b) => Number(b.rule.match.method !== undefined) - Number(a.rule.match.method !== undefined),
    words: () => "matches the method",
  },
  {
    compare: (a, b) => b.rule.match.headers.length - a.rule.match.headers.length,
    words: () => "matches more headers",
  },
  {
    compare: (a, b) => b.rule.match.query.length - a.rule.match.query.length,
    words: () => "matches more query parameters",
  },
];

function pathOrder({ path }: RequestMatch): number {
  return path === undefined ? 0 : PATH_ORDER[path.type];
}

function pathLength({ path }: RequestMatch): number {
  return path?.value.length ?? 0;
}
