import type { PathMatch, Rule } from "../plan/rule.ts";

/**
 * Why one rule goes before another that matches as well, both of one host (HTTPRouteRule.matches): exact path, then the longer
 * prefix, then a method match, then more header matches, then more query matches, then the older route, then the one
 * whose `namespace/name` is first, then the order within the route. The order itself is the plan's; these are its reasons.
 */
export function whyBefore(winner: Rule, loser: Rule): string {
  for (const [what, value] of CRITERIA) if (value(winner) > value(loser)) return what;
  const [a, b] = [winner.origin, loser.origin];
  if (a.kind === b.kind && a.namespace === b.namespace && a.name === b.name)
    return "stands earlier in the same route";
  return "its route is older, or of the same age and first by namespace and name";
}

const CRITERIA: readonly (readonly [string, (rule: Rule) => number])[] = [
  ["matches the path more specifically", ({ match }) => pathRank(match.path)],
  ["matches the method", ({ match }) => (match.method === undefined ? 0 : 1)],
  ["matches more headers", ({ match }) => match.headers.length],
  ["matches more query parameters", ({ match }) => match.query.length],
];

/** An absent path is the prefix "/". Expressions have no place in the order of the API: the plan has given them one. */
function pathRank(path: PathMatch | undefined): number {
  if (path === undefined) return 1;
  return path.type === "exact" ? Number.MAX_SAFE_INTEGER : path.value.length;
}
