/**
 * After a NACK of a port that is not about its socket, the port is sent again without the listeners
 * that caused it. Probes find those: Envoy listeners without a socket. Connections to a rejected
 * listener are closed, since no other listener may answer for its hostnames.
 */

import type { GuardCheck } from "../../../plan/guard.ts";
import type { HostItem, ItemId, ListenerItem } from "../../../plan/plan.ts";
import type { Answer } from "../ads/ads-stream.ts";
import type { XdsResource } from "../ads/resource.ts";
import type { RefusedTreatment } from "../compile/port-listener.ts";
import { bisect } from "./bisection.ts";
import type { ScopeNack } from "./scope-containment.ts";

export interface PortContainmentOptions {
  /** A probe of some listeners of a port; undefined: there is none for this port. */
  readonly compileProbe: (port: ItemId, trial: NamedTrial) => XdsResource | undefined;
  readonly send: (probe: XdsResource) => void;
  readonly withdraw: (probe: string) => void;
  /** The set of rejected listeners of the port has changed. */
  readonly onLearned: (port: ItemId, listeners: readonly ItemId[]) => void;
  /** A NACK of the port for which no listener alone is to blame. */
  readonly onInexplicable: (port: ItemId, refusal: ScopeNack) => void;
}

export interface Trial {
  readonly listeners: ReadonlySet<ItemId>;
  readonly refused: ReadonlyMap<ItemId, RefusedTreatment>;
}

export interface NamedTrial extends Trial {
  readonly name: string;
}

/** A listener and all that becomes part of the port with it. */
export interface PortListener {
  readonly listener: ListenerItem;
  readonly hosts: readonly HostItem[];
  /** What guards of the hosts' rules check. */
  readonly guards?: readonly (GuardCheck | undefined)[];
}

interface Refused {
  readonly treatment: RefusedTreatment;
  readonly content: string;
}

interface Search {
  readonly refusal: ScopeNack;
  readonly steps: ReturnType<typeof findRefused>;
  readonly contents: ReadonlyMap<ItemId, string>;
  readonly answers: Map<string, boolean>;
  version: string;
}

const PROBE = "probe ";
const NONE: ReadonlyMap<ItemId, RefusedTreatment> = new Map();

export class PortContainment {
  readonly #options: PortContainmentOptions;
  readonly #refused: Map<ItemId, Map<ItemId, Refused>> = new Map();
  readonly #searches: Map<ItemId, Search> = new Map();
  /** Versions of ports with a NACK for which no listener is to blame. */
  readonly #inexplicable: Map<ItemId, string> = new Map();

  constructor(options: PortContainmentOptions) {
    this.#options = options;
  }

  /** What to do with the listeners of a port, as they are now. */
  treatments(port: ItemId, listeners: () => Iterable<PortListener>): ReadonlyMap<ItemId, RefusedTreatment> {
    const refused = this.#refused.get(port);
    if (refused === undefined) return NONE;
    const contents = contentsOf(listeners());
    for (const [id, { content }] of refused) if (contents.get(id) !== content) refused.delete(id);
    if (refused.size === 0) this.#refused.delete(port);
    return new Map(Array.from(refused, ([id, { treatment }]) => [id, treatment]));
  }

  isRefused({ id, port }: ListenerItem): boolean {
    return this.#refused.get(port)?.has(id) === true;
  }

  /** A NACK of a version of a port. Returns whether a search for the cause is under way. */
  refused(port: ItemId, refusal: ScopeNack, all: Iterable<PortListener>): boolean {
    if (this.#searches.has(port)) return true;
    if (this.#inexplicable.get(port) === refusal.version) return false;
    const known = this.#refused.get(port);
    const contents = contentsOf(all);
    const suspects = [...contents.keys()].filter((id) => known?.has(id) !== true);
    this.#inexplicable.set(port, refusal.version);
    if (suspects.length === 0) return false;
    const search = { refusal, steps: findRefused(suspects), contents, answers: new Map(), version: "" };
    this.#searches.set(port, search);
    return this.#advance(port, search);
  }

  portOfProbe(name: string): ItemId | undefined {
    return name.startsWith(PROBE) ? name.slice(PROBE.length) : undefined;
  }

  answered(port: ItemId, replica: string, { version, problem }: Answer): void {
    const search = this.#searches.get(port);
    if (search === undefined || search.version !== version || search.refusal.replica !== replica) return;
    search.answers.set(version, problem === undefined);
    this.#advance(port, search, problem === undefined);
  }

  replicaLeft(replica: string): void {
    for (const [port, search] of this.#searches) {
      if (search.refusal.replica !== replica) continue;
      this.#inexplicable.delete(port);
      this.#end(port);
    }
  }

  forget(port: ItemId): void {
    this.#end(port);
    this.#refused.delete(port);
    this.#inexplicable.delete(port);
  }

  #advance(port: ItemId, search: Search, accepted?: boolean): boolean {
    for (let answer = accepted; ; ) {
      const step = answer === undefined ? search.steps.next() : search.steps.next(answer);
      if (step.done === true) return this.#finish(port, search, step.value);
      const probe = this.#options.compileProbe(port, { name: `${PROBE}${port}`, ...step.value });
      if (probe === undefined) return this.#finish(port, search, NONE);
      answer = search.answers.get(probe.version);
      if (answer !== undefined) continue;
      search.version = probe.version;
      this.#options.send(probe);
      return true;
    }
  }

  #finish(
    port: ItemId,
    { refusal, contents }: Search,
    found: ReadonlyMap<ItemId, RefusedTreatment>,
  ): boolean {
    this.#end(port);
    if (found.size === 0) {
      this.#options.onInexplicable(port, refusal);
      return false;
    }
    const refused = this.#refused.get(port) ?? new Map<ItemId, Refused>();
    this.#refused.set(port, refused);
    for (const [id, treatment] of found) refused.set(id, { treatment, content: contents.get(id) ?? "" });
    this.#options.onLearned(port, [...found.keys()]);
    return true;
  }

  #end(port: ItemId): void {
    if (this.#searches.delete(port)) this.#options.withdraw(`${PROBE}${port}`);
  }
}

/** All of `suspects` together have been refused. */
function* findRefused(
  suspects: readonly ItemId[],
): Generator<Trial, ReadonlyMap<ItemId, RefusedTreatment>, boolean> {
  const found = new Map<ItemId, RefusedTreatment>();
  const trialOf = (some: readonly ItemId[]): Trial => ({ listeners: new Set(some), refused: NONE });
  for (const id of yield* bisect(suspects, trialOf)) {
    if (yield trialOf([id])) continue;
    const closes = yield { listeners: new Set([id]), refused: new Map([[id, "closed"]]) };
    found.set(id, closes ? "closed" : "omitted");
  }
  return found;
}

function contentsOf(all: Iterable<PortListener>): ReadonlyMap<ItemId, string> {
  return new Map(Array.from(all, (each) => [each.listener.id, JSON.stringify(each)]));
}
