import type { GuardItem } from "../../plan/guard.ts";
import type { Rule } from "../../plan/rule.ts";
import type { BackendTarget } from "../foundation/item-ids.ts";
import type { Failure } from "../foundation/verdict.ts";

export interface CompiledRules {
  /** One for each match of each rule, ready to be placed into host tables. */
  readonly rules: readonly Rule[];
  /** References of the route that do not resolve, in the order in which they stand. */
  readonly unresolved: readonly Failure[];
  /** Rules that cannot be served as written and are left out, by index. */
  readonly dropped: readonly { readonly rule: number; readonly failure: Failure }[];
  readonly targets: readonly BackendTarget[];
  /** Of filters that are guards of their rules. */
  readonly guards: readonly GuardItem[];
}

/**
 * Turns a reference into a backend id, or undefined when it does not resolve; what it sees is
 * collected beside.
 */
export type Resolve = (reference: {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly port?: number;
}) => string | undefined;

/** A rule that cannot be served as written. */
export class Unservable {
  readonly failure: Failure;

  constructor(reason: string, message: string) {
    this.failure = { reason, message };
  }
}
