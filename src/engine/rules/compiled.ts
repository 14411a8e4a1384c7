import type { Action, RequestMatch, RuleOrigin } from "../../plan/rule.ts";
import type { BackendTarget } from "../backends.ts";
import type { Finding } from "../findings.ts";

/** One rule of a route, ready to be placed into host tables. */
export interface CompiledRule {
  readonly origin: Omit<RuleOrigin, "match">;
  readonly matches: readonly RequestMatch[];
  readonly action: Action;
}

export interface CompiledRules {
  readonly rules: readonly CompiledRule[];
  /** References of the route that do not resolve, in the order in which they stand. */
  readonly unresolved: readonly Finding[];
  /** Rules that cannot be served as written and are left out, by index. */
  readonly dropped: readonly { readonly rule: number; readonly finding: Finding }[];
  readonly targets: readonly BackendTarget[];
}

/** Turns a reference into a backend id, or undefined when it does not resolve; what it sees is collected beside. */
export type Resolve = (reference: {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly port?: number;
}) => string | undefined;

/** A rule that cannot be served as written. */
export class Unservable {
  readonly finding: Finding;

  constructor(reason: string, message: string) {
    this.finding = { reason, message };
  }
}
