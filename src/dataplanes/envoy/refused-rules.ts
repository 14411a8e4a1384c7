/** Rules that Envoy refuses, in the words of a report. */

import type { RefusedRule } from "../../plan/item-report.ts";
import type { Offender } from "./containment/offender-search.ts";

/** The most rejected rules that are reported for one host: a status has little room. */
const MOST_RULES = 64;

/** Each once, however many matches of a rule are refused. */
export function refusedRulesOf(offenders: Iterable<Offender>): readonly RefusedRule[] {
  const rules = new Map<string, RefusedRule>();
  for (const offender of offenders) {
    const refused = refusedRule(offender);
    rules.set(JSON.stringify(refused), refused);
  }
  return [...rules.values()].slice(0, MOST_RULES);
}

function refusedRule({ suspect, treatment, field }: Offender): RefusedRule {
  const { kind, namespace, name, rule } = suspect.rule.origin;
  const what = field ?? `rules[${rule}]`;
  const outcome =
    treatment === "500"
      ? "requests that the rule matches are answered with 500"
      : "no request is taken by the rule";
  return { kind, namespace, name, rule, message: `the data plane refuses ${what}: ${outcome}` };
}
