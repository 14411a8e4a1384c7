/**
 * One Envoy, on one aggregated delta stream.
 *
 * - Changes are marked by name and looked up when they are sent: whatever changes again before that
 *   costs nothing more.
 * - One resource per response, so that a refusal concerns that resource alone. The exception is the
 *   first answer for scopes: ports open when all have been taken, so it comes in larger parts. If
 *   one is refused, its scopes follow one by one.
 * - Nothing is sent before what it needs has been answered for; removals go the other way round.
 *   Neither waits for ever.
 * - At most so many responses are unanswered, and none is written while the socket is full.
 */

import { normalizeName } from "../../../matching/authority.ts";
import { isWildcard, matchesName } from "../../../plan/hostname.ts";
import { type DeltaRequest, deltaResponse } from "../messages/discovery.ts";
import { keyOf, Patience } from "./dependency-wait.ts";
import { BorrowedNames } from "./on-demand-names.ts";
import { ALL, type Kind, kindOf, kinds, type Reference, type Resource, urlOf } from "./resource.ts";
import type { ResourceStore, StoreWatcher } from "./resource-store.ts";
import { Subscription } from "./subscription.ts";

export interface AdsStreamOptions {
  readonly store: ResourceStore;
  /** Whether more may be written at once; if not, `drained` is called when it may. */
  readonly write: (message: Uint8Array) => boolean;
  readonly onAnswer: (answer: Answer) => void;
  readonly limits: StreamLimits;
}

/** What became of one resource; `problem` is Envoy's own text. */
export interface Answer {
  readonly kind: Kind;
  readonly name: string;
  readonly version: string;
  readonly problem?: string;
}

export interface StreamLimits {
  readonly unanswered: number;
  /** Names of the client's making whose secrets are kept. */
  readonly borrowedSecrets: number;
  /** Such names answered per second, in bursts of as many. */
  readonly borrowedPerSecond: number;
  /** How long something may wait for what it needs. */
  readonly patienceMs: number;
}

export const defaultStreamLimits: StreamLimits = {
  unanswered: 256,
  borrowedSecrets: 2_048,
  borrowedPerSecond: 1_000,
  patienceMs: 10_000,
};

interface Sent {
  readonly kind: Kind;
  /** Without a version: removed. */
  readonly entries: readonly { readonly name: string; readonly version?: string }[];
  /** The first answer for a name that a client made up, and nothing of what anybody configured. */
  readonly isBorrowed: boolean;
}

export class AdsStream implements StoreWatcher {
  readonly #options: AdsStreamOptions;
  readonly #subscriptions: Map<Kind, Subscription> = new Map();
  readonly #unanswered: Map<string, Sent> = new Map();
  readonly #borrowed: BorrowedNames;
  /** Borrowed names to let go of. */
  readonly #unwanted: Set<string> = new Set();
  readonly #patience: Patience;
  #nonce = 0;
  #writable = true;
  #scheduled = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  /** Resources sent since the beginning, for whoever measures. */
  sent = 0;

  constructor(options: AdsStreamOptions) {
    this.#options = options;
    this.#borrowed = new BorrowedNames(options.limits.borrowedSecrets, options.limits.borrowedPerSecond);
    this.#patience = new Patience(options.limits.patienceMs);
    options.store.watch(this);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#options.store.unwatch(this);
  }

  /**
   * Everything that this client wants has been sent and answered for; first answers for names of a
   * client's making do not count, since anybody can ask for more of them.
   */
  get settled(): boolean {
    return (
      this.#patience.isEmpty &&
      this.#isGreeted &&
      this.#unanswered.values().every(({ isBorrowed }) => isBorrowed) &&
      this.#subscriptions
        .values()
        .every(({ kind, dirty }) => dirty.values().every((name) => this.#isUnderWay(kind, name)))
    );
  }

  /** Secrets that are kept track of. */
  get secrets(): number {
    return Math.max(this.#subscriptions.get("secret")?.names.size ?? 0, this.#borrowed.size);
  }

  #isUnderWay(kind: Kind, name: string): boolean {
    return kind === "secret" && this.#borrowed.isUnderWay(name);
  }

  /**
   * Tells, whenever it is asked, whether the client has answered for all that it was to have when
   * this was called; what changes later does not matter. Neither do names of a client's making,
   * which anybody may ask for, nor removals of what nothing refers to any more.
   */
  mark(): () => boolean {
    const held = ({ kind, name }: Reference): string | undefined =>
      this.#subscriptions.get(kind)?.held.get(name);
    const before = new Map(Array.from(this.#unsent(), ([key, each]) => [key, { ...each, held: held(each) }]));
    let last: number | undefined;
    return () => {
      if (!this.#isGreeted) return false;
      const unsent = before.size === 0 ? before : this.#unsent();
      for (const [key, each] of before) if (!unsent.has(key) || held(each) !== each.held) before.delete(key);
      if (before.size > 0) return false;
      last ??= this.#nonce;
      const [oldest] = this.#unanswered.keys();
      return oldest === undefined || Number(oldest) > last;
    };
  }

  get #isGreeted(): boolean {
    if (!this.#subscriptions.has("listener")) return false;
    return [...this.#subscriptions.values()].every(({ greeting }) => !greeting);
  }

  #unsent(): Map<string, Reference> {
    const { store } = this.#options;
    const unsent = new Map(Array.from(this.#patience.waiting(), (each) => [keyOf(each), each]));
    for (const { kind, dirty } of this.#subscriptions.values()) {
      for (const name of dirty) {
        if (kind === "secret" && !store.secrets.isConfigured(name)) continue;
        if ((kind === "cluster" || kind === "endpoints") && store.get(kind, name) === undefined) continue;
        unsent.set(keyOf({ kind, name }), { kind, name });
      }
    }
    return unsent;
  }

  receive(request: DeltaRequest): void {
    const kind = kindOf(request.typeUrl);
    if (kind === undefined) return;
    let subscription = this.#subscriptions.get(kind);
    if (subscription === undefined || (!subscription.wildcard && request.subscribe.includes(ALL))) {
      subscription = new Subscription(kind);
      this.#subscriptions.set(kind, subscription);
      subscription.begin(request, this.#options.store);
      // What a client has, it has taken, though its answer may have been lost with an earlier
      // stream.
      for (const [name, version] of request.initialVersions) {
        this.#options.onAnswer({ kind, name, version });
        // Kinds come back in any order: something may wait for this one.
        this.#release(kind, name);
      }
    }
    if (request.nonce !== "") this.#answered(request.nonce, request.error);
    subscription.subscribe(request.subscribe, request.initialVersions);
    subscription.unsubscribe(request.unsubscribe);
    if (kind === "secret") this.#borrow(subscription, request);
    if (kind === "scope" && !this.#isPending(kind)) this.#release(kind, ALL);
    this.#schedule();
  }

  changed(kind: Kind, name: string): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription?.wants(name) !== true) return;
    subscription.dirty.add(name);
    this.#schedule();
  }

  secretsChanged(pattern: string): void {
    const subscription = this.#subscriptions.get("secret");
    if (subscription === undefined) return;
    const { secrets } = this.#options.store;
    // An exact name is marked by itself; other spellings of it are of the client's making.
    const wide = pattern === "" || isWildcard(pattern);
    for (const name of wide ? subscription.names : this.#borrowed.names()) {
      if (!matchesName(pattern, normalizeName(name)) || this.#borrowed.isWaiting(name)) continue;
      subscription.dirty.add(name);
      // What was a listener's own name may be one of a wildcard's now.
      const owner = wide && !secrets.isConfigured(name) ? secrets.ownerOf(name) : undefined;
      if (owner !== undefined) this.#borrowed.keep(name, owner);
    }
    this.#schedule();
  }

  /** Sends a resource again that was refused for a reason that may have passed. */
  retry(kind: Kind, name: string): void {
    this.#subscriptions.get(kind)?.held.delete(name);
    this.changed(kind, name);
  }

  drained(): void {
    this.#writable = true;
    this.#schedule();
  }

  #borrow({ dirty }: Subscription, request: DeltaRequest): void {
    const { secrets } = this.#options.store;
    for (const name of request.subscribe) {
      if (secrets.isConfigured(name)) continue;
      const owner = secrets.ownerOf(name);
      if (owner !== undefined && request.initialVersions.has(name)) {
        this.#borrowed.keep(name, owner);
        continue;
      }
      dirty.delete(name);
      this.#unwanted.delete(name);
      // Nobody's names are refused at once: keeping somebody waiting costs more than that.
      const refused = owner === undefined ? name : this.#borrowed.admit(name, owner);
      if (refused !== undefined) this.#unwanted.add(refused);
    }
    for (const name of request.unsubscribe) {
      this.#borrowed.delete(name);
      this.#unwanted.delete(name);
    }
  }

  #answered(nonce: string, problem: string | undefined): void {
    const sent = this.#unanswered.get(nonce);
    if (sent === undefined) return;
    this.#unanswered.delete(nonce);
    const subscription = this.#subscription(sent.kind);
    if (problem !== undefined && sent.entries.length > 1) {
      // One of many is bad, and Envoy does not say which: each has to speak for itself.
      for (const { name, version } of sent.entries) {
        if (version === undefined) continue;
        subscription.held.delete(name);
        subscription.dirty.add(name);
      }
      return;
    }
    for (const { name, version } of sent.entries) {
      if (version === undefined) continue;
      if (sent.kind === "secret") this.#borrowed.answered(name);
      // A handshake waits for its first secret: better that it fails at once.
      if (sent.kind === "secret" && problem !== undefined && !subscription.settled.has(name)) {
        this.#send(subscription, [], [name]);
      } else subscription.settled.add(name);
      this.#release(sent.kind, name);
      this.#options.onAnswer({
        kind: sent.kind,
        name,
        version,
        ...(problem === undefined ? {} : { problem }),
      });
    }
    if (sent.kind === "scope" && !this.#isPending(sent.kind)) this.#release(sent.kind, ALL);
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (!this.#closed) this.#pump();
    });
  }

  get #mayWrite(): boolean {
    return this.#writable && this.#unanswered.size < this.#options.limits.unanswered;
  }

  #pump(): void {
    this.#pumpBorrowed();
    for (const kind of kinds) this.#pumpUpdates(kind);
    for (const kind of kinds.toReversed()) this.#pumpRemovals(kind);
    this.#wakeUp();
  }

  /**
   * Names whose turn it is, and all those to let go of in one answer: before anything else, or a
   * flood of new names would leave no room for it.
   */
  #pumpBorrowed(): void {
    const subscription = this.#subscriptions.get("secret");
    if (subscription === undefined || !this.#writable) return;
    for (const name of this.#borrowed.takeDue()) subscription.dirty.add(name);
    for (const name of this.#borrowed.takeExcess()) this.#unwanted.add(name);
    const gone = [...this.#unwanted].filter(
      (name) => subscription.names.has(name) || subscription.held.has(name),
    );
    this.#unwanted.clear();
    if (gone.length > 0) this.#send(subscription, [], gone, true);
    for (const name of gone) subscription.forget(name);
  }

  #pumpUpdates(kind: Kind): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription === undefined) return;
    if (subscription.greeting && subscription.wildcard && !this.#greet(subscription)) return;
    for (const name of subscription.dirty) {
      if (!this.#mayWrite) return;
      const resource = this.#options.store.get(kind, name);
      if (resource === undefined) continue;
      if (subscription.held.get(name) === resource.version || !subscription.wants(name)) {
        subscription.dirty.delete(name);
        continue;
      }
      const missing = this.#missing(resource);
      subscription.dirty.delete(name);
      if (missing === undefined) this.#send(subscription, [resource], [], this.#isUnderWay(kind, name));
      else this.#patience.hold(resource, missing);
    }
  }

  /** The first answer. Returns whether it has been given. */
  #greet(subscription: Subscription): boolean {
    if (!this.#mayWrite) return false;
    if (subscription.kind === "scope") {
      const all = [...subscription.dirty].flatMap((name) => this.#options.store.get("scope", name) ?? []);
      const incomplete = all.some((resource) => this.#missing(resource) !== undefined);
      if (this.#patience.putsOff("greeting", incomplete)) return false;
      for (const { name } of all) subscription.dirty.delete(name);
      // In parts, since what Envoy needs to read a message it does not give back.
      for (let at = 0; at === 0 || at < all.length; at += GREETING_PART)
        this.#send(subscription, all.slice(at, at + GREETING_PART), []);
    } else if (subscription.dirty.size === 0) this.#send(subscription, [], []);
    subscription.greeting = false;
    return true;
  }

  #pumpRemovals(kind: Kind): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription === undefined || subscription.dirty.size === 0) return;
    if (this.#patience.putsOff(kind, kind !== "secret" && this.#stillReferred(kind))) return;
    for (const name of subscription.dirty) {
      if (!this.#mayWrite) return;
      if (this.#options.store.get(kind, name) !== undefined) continue;
      subscription.dirty.delete(name);
      if (subscription.held.has(name) || subscription.names.has(name)) this.#send(subscription, [], [name]);
      // A client that is told that there is no such secret asks again when it needs it.
      if (kind !== "secret" || this.#options.store.secrets.isConfigured(name)) continue;
      this.#borrowed.delete(name);
      subscription.forget(name);
    }
  }

  /** Something that comes later in order, and so may refer to this kind, is not settled yet. */
  #stillReferred(kind: Kind): boolean {
    const later = new Set(kinds.slice(kinds.indexOf(kind) + 1));
    if (kind === "cluster") later.delete("endpoints");
    for (const sent of this.#unanswered.values()) if (later.has(sent.kind)) return true;
    if (this.#patience.isWaiting((each) => later.has(each))) return true;
    return [...later].some((each) => (this.#subscriptions.get(each)?.dirty.size ?? 0) > 0);
  }

  #send(
    subscription: Subscription,
    resources: readonly Resource[],
    removed: readonly string[],
    isBorrowed = false,
  ): void {
    const nonce = String(++this.#nonce);
    for (const { name, version, refreshes } of resources) {
      // Also of a new one: Envoy does not ask for what another of its clusters has already, and
      // would wait for ever.
      if (refreshes !== undefined) this.#refresh(refreshes);
      subscription.held.set(name, version);
    }
    for (const name of removed) {
      subscription.held.delete(name);
      subscription.settled.delete(name);
    }
    const { kind } = subscription;
    const entries = [...resources, ...removed.map((name) => ({ name }))];
    this.#unanswered.set(nonce, { kind, entries, isBorrowed });
    this.sent += resources.length;
    const encoded = resources.map((resource) => resource.encoded);
    this.#writable = this.#options.write(
      deltaResponse({ typeUrl: urlOf(kind), nonce, resources: encoded, removed }),
    );
  }

  #refresh({ kind, name }: Reference): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription?.held.delete(name) === true) subscription.dirty.add(name);
  }

  /** The first thing that the client lacks for this resource. */
  #missing(resource: Resource): Reference | undefined {
    if (this.#patience.takeOverdue(resource)) return undefined;
    return resource.needs.find(({ kind, name }) => {
      if (name === ALL) return this.#isPending(kind);
      const subscription = this.#subscriptions.get(kind);
      return subscription?.settled.has(name) !== true && this.#options.store.get(kind, name) !== undefined;
    });
  }

  /**
   * Something of the kind is still to be told or to be answered for. Removals do not count: they
   * wait for others themselves.
   */
  #isPending(kind: Kind): boolean {
    const subscription = this.#subscriptions.get(kind);
    if (subscription === undefined || subscription.greeting) return true;
    for (const name of subscription.dirty) if (this.#options.store.get(kind, name) !== undefined) return true;
    for (const sent of this.#unanswered.values()) {
      if (sent.kind === kind && sent.entries.some(({ version }) => version !== undefined)) return true;
    }
    return this.#patience.isWaiting((each) => each === kind);
  }

  #release(kind: Kind, name: string): void {
    this.#markAll(this.#patience.release({ kind, name }));
  }

  #markAll(references: readonly Reference[]): void {
    for (const { kind, name } of references) this.#subscription(kind).dirty.add(name);
  }

  /** Looks again later when something waits for time to pass. */
  #wakeUp(): void {
    clearTimeout(this.#timer);
    const subscriptions = [...this.#subscriptions.values()];
    const waits = subscriptions.some(
      ({ dirty, greeting, wildcard }) => dirty.size > 0 || (greeting && wildcard),
    );
    if (!waits && this.#patience.isEmpty && !this.#borrowed.hasWaiting) return;
    this.#timer = setTimeout(() => {
      this.#markAll(this.#patience.releaseOverdue());
      this.#schedule();
    }, RETRY_MS);
    this.#timer.unref();
  }

  #subscription(kind: Kind): Subscription {
    const subscription = this.#subscriptions.get(kind);
    if (subscription === undefined) throw new Error(`nobody has subscribed to ${kind}`);
    return subscription;
  }
}

const RETRY_MS = 100;
/** Scopes in one response. */
const GREETING_PART = 32;
