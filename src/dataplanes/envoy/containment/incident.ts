/**
 * What is known of the rules of a scope after a NACK: which are rejected, which were accepted, and
 * which must be tried before they are served.
 */

import { digest } from "../../../digest/digest.ts";
import type { ItemId } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import type { Offender, Suspect } from "./offender-search.ts";
import { answering500, unguarded } from "./rule-parts.ts";

export class Incident {
  readonly #refused: Map<string, Offender> = new Map();
  readonly #proven: Set<string> = new Set();
  /**
   * Rules that were accepted with any guards. When a guard changes they stay: without its rule, a
   * request could go to a wider rule that has no guard.
   */
  readonly #provenRules: Set<string> = new Set();
  /**
   * Namespaces with a rejected rule. Their new rules are tried before they are served, so that a
   * rule that changes all the time does not delay other tenants.
   */
  readonly #distrusted: Set<string> = new Set();
  /** All rules of the scope, as it was last compiled, by their digest. */
  #rules: Map<string, Suspect> = new Map();

  /** The scope is about to be compiled from these rules. */
  take(rules: Iterable<Suspect>): void {
    this.#rules = new Map(Array.from(rules, (each) => [suspectDigest(each), each]));
    for (const digest of this.#refused.keys()) if (!this.#rules.has(digest)) this.#refused.delete(digest);
    for (const digest of this.#proven) if (!this.#rules.has(digest)) this.#proven.delete(digest);
    const rulesAlone = new Set(Array.from(this.#rules.values(), ruleDigest));
    for (const digest of this.#provenRules) if (!rulesAlone.has(digest)) this.#provenRules.delete(digest);
  }

  /** A host's rules as they may be sent. */
  servable(host: ItemId): readonly Rule[] {
    const rules: Rule[] = [];
    const leftOut = new LeftOut();
    for (const [digest, suspect] of this.#rules) {
      const { rule } = suspect;
      const treatment = this.#treatmentOf(digest, suspect);
      if (treatment === "omitted" || treatment === "untried") leftOut.add(rule, treatment);
      else if (suspect.host === host)
        rules.push(treatment === "500" || leftOut.opens(rule) ? answering500(rule) : rule);
    }
    return rules;
  }

  #treatmentOf(digest: string, suspect: Suspect): Offender["treatment"] | "untried" | undefined {
    const refused = this.#refused.get(digest);
    if (refused !== undefined) return refused.treatment;
    return this.#isUntried(digest, suspect) ? "untried" : undefined;
  }

  get refused(): Iterable<Offender> {
    return this.#refused.values();
  }

  /** Rules that have to be tried before they are served. */
  get untried(): readonly Suspect[] {
    return this.#pick((digest, suspect) => this.#isUntried(digest, suspect));
  }

  /**
   * The rules that may have caused a NACK of the scope: those that were never accepted, or else all
   * that were sent.
   */
  get suspects(): readonly Suspect[] {
    const unproven = this.#pick((digest) => !this.#refused.has(digest) && !this.#proven.has(digest));
    return unproven.length > 0 ? unproven : this.#pick((digest) => !this.#refused.has(digest));
  }

  get isOver(): boolean {
    return this.#refused.size === 0 && this.untried.length === 0;
  }

  /** Takes the result of a search among `suspects`. */
  learn(suspects: readonly Suspect[], offenders: readonly Offender[]): void {
    for (const { rule } of suspects) this.#distrusted.delete(rule.origin.namespace);
    const found = new Map(offenders.map((each) => [suspectDigest(each.suspect), each]));
    for (const [digest, offender] of found) {
      this.#distrusted.add(offender.suspect.rule.origin.namespace);
      if (this.#rules.has(digest)) this.#refused.set(digest, offender);
    }
    for (const each of suspects) {
      const digest = suspectDigest(each);
      if (found.has(digest)) continue;
      this.#proven.add(digest);
      this.#provenRules.add(ruleDigest(each));
    }
    for (const { suspect } of this.#refused.values()) this.#distrusted.add(suspect.rule.origin.namespace);
  }

  /** Takes what is known of the same rules in other scopes. Returns whether anything changed. */
  adopt(offenders: readonly Offender[]): boolean {
    const own = offenders.filter(({ suspect }) => this.#rules.has(suspectDigest(suspect)));
    this.learn([], own);
    return own.length > 0;
  }

  #isUntried(digest: string, suspect: Suspect): boolean {
    if (!this.#distrusted.has(suspect.rule.origin.namespace) || this.#refused.has(digest)) return false;
    return !this.#provenRules.has(ruleDigest(suspect));
  }

  #pick(wanted: (digest: string, suspect: Suspect) => boolean): readonly Suspect[] {
    return [...this.#rules].flatMap(([digest, suspect]) => (wanted(digest, suspect) ? [suspect] : []));
  }
}

/**
 * The guards of rules that are left out. A rule behind them that lacks one may get requests that
 * the guard would not let pass: which requests an omitted rule takes, nobody can say. A rule that
 * is about to be tried closes nothing of other namespaces: it could change all the time.
 */
class LeftOut {
  readonly #guards: Set<ItemId> = new Set();
  readonly #guardsOf: Map<string, Set<ItemId>> = new Map();

  add({ origin, guards = [] }: Rule, treatment: "omitted" | "untried"): void {
    const known =
      treatment === "omitted" ? this.#guards : (this.#guardsOf.get(origin.namespace) ?? new Set());
    if (treatment === "untried") this.#guardsOf.set(origin.namespace, known);
    for (const guard of guards) known.add(guard);
  }

  opens({ origin, guards = [] }: Rule): boolean {
    const own = new Set(guards);
    return [this.#guards, this.#guardsOf.get(origin.namespace)].some(
      (each) => each?.isSubsetOf(own) === false,
    );
  }
}

/** Two rules with the same digest are the same for Envoy. */
function suspectDigest({ host, rule, guards }: Pick<Suspect, "host" | "rule" | "guards">): string {
  return digest([host, rule, guards].map((part) => JSON.stringify(part)).join("\n"), "base64url");
}

/** Whichever guards it has, and whatever they check. */
function ruleDigest({ host, rule }: Suspect): string {
  return suspectDigest({ host, rule: unguarded(rule) });
}
