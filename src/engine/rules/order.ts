/**
 * The order of the rules of one host table: the criteria of the plan, then age, then the order
 * within the route.
 */
import { type AskedRule, RULE_CRITERIA } from "../../plan/rule-precedence.ts";

export interface RankedRule extends AskedRule {
  readonly age: string;
}

export function compareRules(a: RankedRule, b: RankedRule): number {
  for (const { compare } of RULE_CRITERIA) {
    const order = compare(a, b);
    if (order !== 0) return order;
  }
  return (
    (a.age < b.age ? -1 : a.age > b.age ? 1 : 0) ||
    a.rule.origin.rule - b.rule.origin.rule ||
    a.rule.origin.match - b.rule.origin.match
  );
}
