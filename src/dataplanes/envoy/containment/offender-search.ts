/**
 * Finds the rules of a scope that Envoy rejects, by bisection. A generator: it yields rules to try
 * together, and is resumed with whether Envoy accepted them.
 *
 * - By namespace first: what belongs to other tenants is cleared in a few steps, however many bad
 *   rules one of them has.
 * - Then by rule, within a budget. Whatever is left when it is spent counts as refused: its author
 *   has written more bad rules than one can look at.
 * - A rule that is refused alone is tried without each of its parts, so that its author can be told
 *   which one it is.
 */

import type { GuardCheck } from "../../../plan/guard.ts";
import type { ItemId } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import { Budget, bisect } from "./bisection.ts";
import { answering500, rulePartsOf } from "./rule-parts.ts";

/** One rule of one host. */
export interface Suspect {
  readonly host: ItemId;
  /** The pattern of the host. */
  readonly hostname: string;
  readonly rule: Rule;
  /** What the rule's guards check; undefined among them: a guard that is missing. */
  readonly guards?: readonly (GuardCheck | undefined)[];
}

export interface Offender {
  readonly suspect: Suspect;
  /**
   * `500`: requests that the rule matches are answered with 500. `omitted`: Envoy cannot read what
   * the rule matches, so no request can be said to be the rule's.
   */
  readonly treatment: "500" | "omitted";
  /** What Envoy refuses, if one part alone is to blame. */
  readonly field?: string;
}

type Search<T> = Generator<readonly Suspect[], T, boolean>;

/** Tries for the rules of one namespace; beyond that they are not looked at one by one. */
export const TRIES_PER_NAMESPACE = 128;

/**
 * All of `suspects` together have been refused. Returns nothing when none is refused without the
 * others.
 */
export function* findOffenders(suspects: readonly Suspect[]): Search<readonly Offender[]> {
  const groups = Map.groupBy(suspects, ({ rule }) => rule.origin.namespace);
  const refused = yield* bisect([...groups.values()], (some) => some.flat());
  const offenders: Offender[] = [];
  for (const group of refused) for (const found of yield* offendersOf(group)) offenders.push(found);
  return offenders;
}

/** Those of one namespace. */
function* offendersOf(group: readonly Suspect[]): Search<readonly Offender[]> {
  const budget = new Budget(TRIES_PER_NAMESPACE);
  const offenders: Offender[] = [];
  const unexamined: Suspect[] = [];
  for (const suspect of yield* bisect(group, (some) => some, budget)) {
    const found = yield* diagnose(suspect, budget);
    if (found === "unexamined") unexamined.push(suspect);
    else if (found !== undefined) offenders.push(found);
  }
  if (unexamined.length === 0) return offenders;
  const treatment = (yield unexamined.map(with500)) ? "500" : "omitted";
  return [...offenders, ...unexamined.map((suspect) => ({ suspect, treatment }) as const)];
}

/** What to do with a rule; undefined: it is not refused alone. */
function* diagnose(suspect: Suspect, budget: Budget): Search<Offender | "unexamined" | undefined> {
  if (!budget.spend()) return "unexamined";
  if (yield [suspect]) return undefined;
  for (const { field, isMatch, without } of rulePartsOf(suspect.rule)) {
    if (!budget.spend()) return "unexamined";
    if (yield [{ ...suspect, rule: without }])
      return { suspect, treatment: isMatch ? "omitted" : "500", field };
  }
  return { suspect, treatment: (yield [with500(suspect)]) ? "500" : "omitted" };
}

function with500(suspect: Suspect): Suspect {
  return { ...suspect, rule: answering500(suspect.rule) };
}
