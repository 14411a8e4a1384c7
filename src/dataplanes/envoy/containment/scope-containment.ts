/**
 * A scope that Envoy refuses is sent again without the rules that it refuses. Which ones, a search
 * finds with probes: scopes of a name that no request has, so that nobody's requests notice.
 *
 * What is known of a refused scope is kept while it has a refused rule: other changes of it, and
 * other Envoys, do not meet the refusal again.
 */

import type { GuardItem } from "../../../plan/guard.ts";
import type { HostItem, ItemId } from "../../../plan/plan.ts";
import type { Answer } from "../ads/ads-stream.ts";
import type { XdsResource } from "../ads/resource.ts";
import { Incident } from "./incident.ts";
import { findOffenders, type Offender, type Suspect } from "./offender-search.ts";

export interface ContainmentOptions {
  /** A scope of these rules under another name; undefined: there is no such scope any more. */
  readonly compileProbe: (
    scope: string,
    name: string,
    hosts: readonly Pick<HostItem, "hostname" | "rules">[],
  ) => XdsResource | undefined;
  readonly send: (resource: XdsResource) => void;
  readonly withdraw: (probe: string) => void;
  /** What is known of the scope's rules has changed. */
  readonly onLearned: (scope: string) => void;
  /** Envoy refuses the scope, and none of its rules alone. */
  readonly onInexplicable: (scope: string, replica: string) => void;
  /** Of the scope as it is sent now. */
  readonly versionOf: (scope: string) => string | undefined;
  readonly guard: (id: ItemId) => GuardItem | undefined;
}

/** One Envoy's NACK of one version of a scope. */
export interface ScopeNack {
  readonly replica: string;
  readonly version: string;
}

/**
 * How long a changed scope waits for rules that have to be tried first, before it is sent without
 * them.
 */
const HOLD_MS = 250;
/** No key of a request begins with it: those begin with the number of a port. */
const PROBE = "probe ";

interface Search {
  /** What it is to explain, by whose answers; undefined: whoever's come first. */
  readonly refusal: ScopeNack | undefined;
  readonly suspects: readonly Suspect[];
  readonly steps: ReturnType<typeof findOffenders>;
  readonly answers: Map<string, boolean>;
  version: string;
}

interface Contained {
  readonly incident: Incident;
  search?: Search;
  /** Of a newer version of the scope, while a search was under way. */
  next?: ScopeNack;
  /** Since when a change of the scope has been waiting. */
  hold?: NodeJS.Timeout;
  isOverdue: boolean;
}

export class ScopeContainment {
  readonly #options: ContainmentOptions;
  readonly #scopes: Map<string, Contained> = new Map();
  /** Scopes in which a host has refused rules. */
  readonly #scopesOf: Map<ItemId, Set<string>> = new Map();

  constructor(options: ContainmentOptions) {
    this.#options = options;
  }

  /** The hosts of a scope with the rules that may be sent. */
  servable(scope: string, hosts: readonly HostItem[]): readonly HostItem[] {
    const contained = this.#scopes.get(scope);
    if (contained === undefined) return hosts;
    contained.incident.take(this.#rulesOf(hosts));
    return hosts.map((host) => ({ ...host, rules: contained.incident.servable(host.id) }));
  }

  /** Whether a scope that was just compiled should be kept back: rules of it are being tried. */
  holds(scope: string): boolean {
    const contained = this.#scopes.get(scope);
    if (contained === undefined) return false;
    const { untried, isOver } = contained.incident;
    if (isOver && contained.search === undefined) {
      this.forget(scope);
      return false;
    }
    if (untried.length === 0) return false;
    if (contained.search === undefined) this.#begin(scope, contained, untried);
    // Its answers may all have been known.
    if (this.#scopes.get(scope)?.search === undefined || contained.isOverdue) return false;
    contained.hold ??= setTimeout(() => {
      contained.isOverdue = true;
      this.#options.onLearned(scope);
    }, HOLD_MS).unref();
    return true;
  }

  /** Envoy refuses the current version of a scope, which consists of these hosts. */
  refused(scope: string, refusal: ScopeNack, hosts: readonly HostItem[]): void {
    const known = this.#scopes.get(scope);
    const contained = known ?? { incident: new Incident(), isOverdue: false };
    this.#scopes.set(scope, contained);
    contained.incident.take(this.#rulesOf(hosts));
    if (contained.search !== undefined) {
      contained.next = refusal;
      return;
    }
    // A wildcard's rules stand in many scopes: what one of them has found is true of all.
    if (known === undefined && contained.incident.adopt(hosts.flatMap(({ id }) => [...this.refusedOf(id)]))) {
      this.#learned(scope, contained);
      return;
    }
    const { suspects } = contained.incident;
    if (suspects.length > 0) this.#begin(scope, contained, suspects, refusal);
    else this.#options.onInexplicable(scope, refusal.replica);
  }

  /** An Envoy's answer to a probe; undefined where the name is no probe's. */
  scopeOfProbe(name: string): string | undefined {
    return name.startsWith(PROBE) ? name.slice(PROBE.length) : undefined;
  }

  answered(scope: string, replica: string, { version, problem }: Answer): void {
    const contained = this.#scopes.get(scope);
    const search = contained?.search;
    if (contained === undefined || search === undefined || search.version !== version) return;
    if (search.refusal !== undefined && search.refusal.replica !== replica) return;
    search.answers.set(version, problem === undefined);
    this.#advance(scope, contained, search, problem === undefined);
  }

  /** Whatever this Envoy was asked, it will not answer. */
  replicaLeft(replica: string): void {
    for (const [scope, contained] of this.#scopes) {
      if (contained.search?.refusal?.replica !== replica) continue;
      this.#end(scope, contained);
      this.#options.onLearned(scope);
    }
  }

  /** The scope is gone, or all of it is served again. */
  forget(scope: string): void {
    const contained = this.#scopes.get(scope);
    if (contained === undefined) return;
    this.#end(scope, contained);
    this.#scopes.delete(scope);
    for (const [host, scopes] of this.#scopesOf)
      if (scopes.delete(scope) && scopes.size === 0) this.#scopesOf.delete(host);
  }

  /** Refused rules of a host, of whatever scopes it is part of. */
  *refusedOf(host: ItemId): Generator<Offender, void, undefined> {
    for (const scope of this.#scopesOf.get(host) ?? [])
      for (const offender of this.#scopes.get(scope)?.incident.refused ?? [])
        if (offender.suspect.host === host) yield offender;
  }

  close(): void {
    for (const { hold } of this.#scopes.values()) clearTimeout(hold);
  }

  #rulesOf(hosts: readonly HostItem[]): readonly Suspect[] {
    return hosts.flatMap(({ id, hostname, rules }) =>
      rules.map((rule): Suspect => {
        const guards = rule.guards?.map((each) => this.#options.guard(each)?.check);
        return { host: id, hostname, rule, ...(guards === undefined ? {} : { guards }) };
      }),
    );
  }

  #begin(scope: string, contained: Contained, suspects: readonly Suspect[], refusal?: ScopeNack): void {
    const steps = findOffenders(suspects);
    const search: Search = { refusal, suspects, steps, answers: new Map(), version: "" };
    contained.search = search;
    this.#advance(scope, contained, search);
  }

  #advance(scope: string, contained: Contained, search: Search, accepted?: boolean): void {
    for (let answer = accepted; ; ) {
      const step = answer === undefined ? search.steps.next() : search.steps.next(answer);
      if (step.done === true) {
        this.#finish(scope, contained, search, step.value);
        return;
      }
      const probe = this.#options.compileProbe(scope, `${PROBE}${scope}`, hostsOf(step.value));
      if (probe === undefined) {
        this.forget(scope);
        return;
      }
      answer = search.answers.get(probe.version);
      if (answer !== undefined) continue;
      search.version = probe.version;
      this.#options.send(probe);
      return;
    }
  }

  #finish(scope: string, contained: Contained, search: Search, offenders: readonly Offender[]): void {
    const { incident, next } = contained;
    this.#end(scope, contained);
    incident.learn(search.suspects, offenders);
    if (search.refusal !== undefined && offenders.length === 0 && this.#isCurrent(scope, search.refusal))
      this.#options.onInexplicable(scope, search.refusal.replica);
    this.#learned(scope, contained);
    if (next === undefined || contained.search !== undefined || !this.#isCurrent(scope, next)) return;
    // What was found does not explain the newer version.
    this.#scopes.set(scope, contained);
    this.#begin(scope, contained, incident.suspects, next);
  }

  #isCurrent(scope: string, { version }: ScopeNack): boolean {
    return this.#options.versionOf(scope) === version;
  }

  #learned(scope: string, { incident }: Contained): void {
    for (const { suspect } of incident.refused) {
      const scopes = this.#scopesOf.get(suspect.host) ?? new Set();
      this.#scopesOf.set(suspect.host, scopes.add(scope));
    }
    this.#options.onLearned(scope);
  }

  #end(scope: string, contained: Contained): void {
    clearTimeout(contained.hold);
    contained.isOverdue = false;
    delete contained.hold;
    delete contained.next;
    if (contained.search === undefined) return;
    delete contained.search;
    this.#options.withdraw(`${PROBE}${scope}`);
  }
}

/** Rules that are tried together, under the hostnames that they belong to. */
function hostsOf(suspects: readonly Suspect[]): readonly Pick<HostItem, "hostname" | "rules">[] {
  return suspects.map(({ hostname, rule }) => ({ hostname, rules: [rule] }));
}
