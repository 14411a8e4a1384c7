/**
 * What is known of the rules of a scope after a NACK: which are rejected, which were accepted, and
 * which must be tried before they are served.
 */

import { createHash } from "node:crypto";
import type { ItemId } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import type { Offender, Suspect } from "./offender-search.ts";
import { answering500 } from "./rule-parts.ts";

export class Incident {
  readonly #refused: Map<string, Offender> = new Map();
  readonly #proven: Set<string> = new Set();
  /**
   * Namespaces with a rejected rule. Their new rules are tried before they are served, so that a
   * rule that changes all the time does not delay other tenants.
   */
  readonly #distrusted: Set<string> = new Set();
  /** All rules of the scope, as it was last compiled, by their digest. */
  #rules: Map<string, Suspect> = new Map();

  /** The scope is about to be compiled from these rules. */
  take(rules: Iterable<Suspect>): void {
    this.#rules = new Map(Array.from(rules, (each) => [digestOf(each), each]));
    for (const digest of this.#refused.keys()) if (!this.#rules.has(digest)) this.#refused.delete(digest);
    for (const digest of this.#proven) if (!this.#rules.has(digest)) this.#proven.delete(digest);
  }

  /** A host's rules as they may be sent. */
  servable(host: ItemId): readonly Rule[] {
    return [...this.#rules].flatMap(([digest, suspect]) => {
      if (suspect.host !== host) return [];
      const refused = this.#refused.get(digest);
      if (refused !== undefined) return refused.treatment === "500" ? [answering500(suspect.rule)] : [];
      return this.#isUntried(digest, suspect) ? [] : [suspect.rule];
    });
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
    const found = new Map(offenders.map((each) => [digestOf(each.suspect), each]));
    for (const [digest, offender] of found) {
      this.#distrusted.add(offender.suspect.rule.origin.namespace);
      if (this.#rules.has(digest)) this.#refused.set(digest, offender);
    }
    for (const each of suspects) {
      const digest = digestOf(each);
      if (!found.has(digest)) this.#proven.add(digest);
    }
    for (const { suspect } of this.#refused.values()) this.#distrusted.add(suspect.rule.origin.namespace);
  }

  /** Takes what is known of the same rules in other scopes. Returns whether anything changed. */
  adopt(offenders: readonly Offender[]): boolean {
    const own = offenders.filter(({ suspect }) => this.#rules.has(digestOf(suspect)));
    this.learn([], own);
    return own.length > 0;
  }

  #isUntried(digest: string, { rule }: Suspect): boolean {
    return (
      this.#distrusted.has(rule.origin.namespace) && !this.#proven.has(digest) && !this.#refused.has(digest)
    );
  }

  #pick(wanted: (digest: string, suspect: Suspect) => boolean): readonly Suspect[] {
    return [...this.#rules].flatMap(([digest, suspect]) => (wanted(digest, suspect) ? [suspect] : []));
  }
}

/** Two rules with the same digest are the same for Envoy. */
function digestOf({ host, rule }: Suspect): string {
  return createHash("sha256")
    .update(`${host}\n${JSON.stringify(rule)}`)
    .digest("base64url");
}
