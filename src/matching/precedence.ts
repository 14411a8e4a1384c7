import type { HostItem } from "../plan/plan.ts";
import type { Rule } from "../plan/rule.ts";
import { type AskedRule, RULE_CRITERIA } from "../plan/rule-precedence.ts";

/**
 * Why one rule of a host goes before another that matches as well, in the words of the criterion
 * that decided.
 */
export function whyBefore(winner: Rule, loser: Rule, host: HostItem): string {
  const [first, second] = [askedOf(winner, host), askedOf(loser, host)];
  const decided = RULE_CRITERIA.find(({ compare }) => compare(first, second) !== 0);
  if (decided !== undefined) return decided.words(winner);
  const [a, b] = [winner.origin, loser.origin];
  if (a.kind === b.kind && a.namespace === b.namespace && a.name === b.name)
    return "stands earlier in the same route";
  return "has the older route, or one of the same age that is first by namespace and name";
}

function askedOf(rule: Rule, { hostname }: HostItem): AskedRule {
  return { rule, asked: rule.asked ?? hostname };
}
