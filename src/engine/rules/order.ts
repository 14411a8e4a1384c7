/**
 * Precedence between the rules of one host table (HTTPRouteRule.matches, GRPCRouteRule.matches, HTTPRoute.spec.hostnames):
 *   1. the route's own hostname: exact before wildcard, longer before shorter;
 *   2. the path: exact, then regular expression, then prefix, each longest first;
 *   3. a method match; 4. more header matches; 5. more query parameter matches;
 *   6. the older route; 7. `namespace/name`; 8. the order within the route.
 */
import { compareSpecificity } from "../../plan/hostname.ts";
import type { RequestMatch, Rule } from "../../plan/rule.ts";

export interface RankedRule {
  readonly rule: Rule;
  /** The hostname that the route asked for. */
  readonly asked: string;
  readonly age: string;
}

export function compareRules(a: RankedRule, b: RankedRule): number {
  return (
    compareHostnames(a.asked, b.asked) ||
    compareMatches(a.rule.match, b.rule.match) ||
    (a.age < b.age ? -1 : a.age > b.age ? 1 : 0) ||
    a.rule.origin.rule - b.rule.origin.rule ||
    a.rule.origin.match - b.rule.origin.match
  );
}

function compareHostnames(a: string, b: string): number {
  return compareSpecificity(a, b) || b.length - a.length;
}

const PATH_ORDER = { exact: 3, regex: 2, prefix: 1 } as const;

function compareMatches(a: RequestMatch, b: RequestMatch): number {
  const order = (match: RequestMatch): number => (match.path === undefined ? 0 : PATH_ORDER[match.path.type]);
  const length = (match: RequestMatch): number => match.path?.value.length ?? 0;
  return (
    order(b) - order(a) ||
    length(b) - length(a) ||
    Number(b.method !== undefined) - Number(a.method !== undefined) ||
    b.headers.length - a.headers.length ||
    b.query.length - a.query.length
  );
}
