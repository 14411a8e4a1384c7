/**
 * One Envoy on one aggregated delta stream (delta ADS).
 *
 * - A change only marks the resource's name. The resource is looked up when it is sent, so one that
 *   changes often is still sent once.
 * - One resource per response, so that a NACK concerns that resource alone. The exception is the
 *   first response for scopes: ports open only when Envoy has all scopes, so it comes in larger
 *   parts. After a NACK of such a part, its scopes are sent again one by one.
 * - A resource is sent after Envoy has answered (ACK or NACK) for the resources that it refers to.
 *   A resource is removed after those that refer to it. Both waits have a time limit.
 * - The number of unanswered responses is limited, and nothing is written while the socket is full.
 */

import { normalizeName } from "../../../matching/authority.ts";
import { isWildcard, matchesName } from "../../../plan/hostname.ts";
import { type DeltaRequest, deltaResponse } from "../messages/discovery.ts";
import { DependencyWait } from "./dependency-wait.ts";
import { OnDemandNames } from "./on-demand-names.ts";
import { ALL, kinds, type Reference, urlOf, type XdsKind, type XdsResource, xdsKindOf } from "./resource.ts";
import type { ResourceStore, StoreWatcher } from "./resource-store.ts";
import { type Sent, StreamProgress } from "./stream-progress.ts";
import { Subscription } from "./subscription.ts";

export interface AdsStreamOptions {
  readonly store: ResourceStore;
  /** Whether more may be written at once; if not, `drained` is called when it may. */
  readonly write: (message: Uint8Array) => boolean;
  readonly onAnswer: (answer: Answer) => void;
  readonly limits: StreamLimits;
}

/** Envoy's ACK of one resource, or its NACK: then `problem` is the text of `error_detail`. */
export interface Answer {
  readonly kind: XdsKind;
  readonly name: string;
  readonly version: string;
  readonly problem?: string;
}

export interface StreamLimits {
  /** Responses without ACK or NACK at a time. */
  readonly unanswered: number;
  /** On-demand names whose secrets are kept. */
  readonly onDemandSecrets: number;
  /** On-demand names answered per second, and the size of a burst. */
  readonly onDemandPerSecond: number;
  /** How long a resource may wait for the resources that it refers to. */
  readonly dependencyWaitMs: number;
}

export const defaultStreamLimits: StreamLimits = {
  unanswered: 256,
  onDemandSecrets: 2_048,
  onDemandPerSecond: 1_000,
  dependencyWaitMs: 10_000,
};

export class AdsStream implements StoreWatcher {
  readonly #options: AdsStreamOptions;
  readonly #subscriptions: Map<XdsKind, Subscription> = new Map();
  readonly #unanswered: Map<string, Sent> = new Map();
  readonly #onDemand: OnDemandNames;
  /** On-demand names to remove from Envoy. */
  readonly #unwanted: Set<string> = new Set();
  readonly #dependencyWait: DependencyWait;
  readonly #progress: StreamProgress;
  #nonce = 0;
  #writable = true;
  #scheduled = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  /** Resources sent since the stream began, for metrics. */
  sent = 0;

  constructor(options: AdsStreamOptions) {
    this.#options = options;
    this.#onDemand = new OnDemandNames(options.limits.onDemandSecrets, options.limits.onDemandPerSecond);
    this.#dependencyWait = new DependencyWait(options.limits.dependencyWaitMs);
    this.#progress = new StreamProgress({
      store: options.store,
      subscriptions: this.#subscriptions,
      unanswered: this.#unanswered,
      onDemand: this.#onDemand,
      dependencyWait: this.#dependencyWait,
      lastNonce: () => this.#nonce,
    });
    options.store.watch(this);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#options.store.unwatch(this);
  }

  get settled(): boolean {
    return this.#progress.settled;
  }

  /** See `StreamProgress.mark`. */
  mark(): () => boolean {
    return this.#progress.mark();
  }

  /** Secrets that this stream keeps in memory. */
  get secrets(): number {
    return Math.max(this.#subscriptions.get("secret")?.names.size ?? 0, this.#onDemand.size);
  }

  receive(request: DeltaRequest): void {
    const kind = xdsKindOf(request.typeUrl);
    if (kind === undefined) return;
    let subscription = this.#subscriptions.get(kind);
    if (subscription === undefined || (!subscription.wildcard && request.subscribe.includes(ALL))) {
      subscription = new Subscription(kind);
      this.#subscriptions.set(kind, subscription);
      subscription.begin(request, this.#options.store);
      // `initial_resource_versions` count as ACKs: those on an earlier stream may have been lost.
      for (const [name, version] of request.initialVersions) {
        this.#options.onAnswer({ kind, name, version });
        // Envoy subscribes to the types in any order: a resource may wait for this one.
        this.#release(kind, name);
      }
    }
    if (request.nonce !== "") this.#answered(request.nonce, request.error);
    subscription.subscribe(request.subscribe, request.initialVersions);
    subscription.unsubscribe(request.unsubscribe);
    if (kind === "secret") this.#admitOnDemand(subscription, request);
    if (kind === "scope" && !this.#progress.isPending(kind)) this.#release(kind, ALL);
    this.#schedule();
  }

  changed(kind: XdsKind, name: string): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription?.wants(name) !== true) return;
    subscription.dirty.add(name);
    this.#schedule();
  }

  secretsChanged(pattern: string): void {
    const subscription = this.#subscriptions.get("secret");
    if (subscription === undefined) return;
    const { secrets } = this.#options.store;
    // `changed` marks an exact name. Other spellings of it exist only as on-demand names.
    const wide = pattern === "" || isWildcard(pattern);
    for (const name of wide ? subscription.names : this.#onDemand.names()) {
      if (!matchesName(pattern, normalizeName(name)) || this.#onDemand.isWaiting(name)) continue;
      subscription.dirty.add(name);
      // The name of a listener may be gone, and a wildcard listener may serve the name now.
      const owner = wide && !secrets.isConfigured(name) ? secrets.ownerOf(name) : undefined;
      if (owner !== undefined) this.#onDemand.keep(name, owner);
    }
    this.#schedule();
  }

  /** Sends a resource again after a NACK whose cause may be gone. */
  retry(kind: XdsKind, name: string): void {
    this.#subscriptions.get(kind)?.clientVersions.delete(name);
    this.changed(kind, name);
  }

  drained(): void {
    this.#writable = true;
    this.#schedule();
  }

  #admitOnDemand({ dirty }: Subscription, request: DeltaRequest): void {
    const { secrets } = this.#options.store;
    for (const name of request.subscribe) {
      if (secrets.isConfigured(name)) continue;
      const owner = secrets.ownerOf(name);
      if (owner !== undefined && request.initialVersions.has(name)) {
        this.#onDemand.keep(name, owner);
        continue;
      }
      dirty.delete(name);
      this.#unwanted.delete(name);
      // Reject unknown server names immediately: a pending handshake costs more than a rejection.
      const refused = owner === undefined ? name : this.#onDemand.admit(name, owner);
      if (refused !== undefined) this.#unwanted.add(refused);
    }
    for (const name of request.unsubscribe) {
      this.#onDemand.delete(name);
      this.#unwanted.delete(name);
    }
  }

  /** Envoy's ACK of a response, or its NACK with a problem. */
  #answered(nonce: string, problem: string | undefined): void {
    const sent = this.#unanswered.get(nonce);
    if (sent === undefined) return;
    this.#unanswered.delete(nonce);
    const subscription = this.#subscription(sent.kind);
    if (problem !== undefined && sent.entries.length > 1) {
      // A NACK does not say which of several resources is bad: send each one in its own response.
      for (const { name, version } of sent.entries) {
        if (version === undefined) continue;
        subscription.clientVersions.delete(name);
        subscription.dirty.add(name);
      }
      return;
    }
    for (const { name, version } of sent.entries) {
      if (version === undefined) continue;
      if (sent.kind === "secret") this.#onDemand.answered(name);
      // A NACK of the first version of a secret leaves a handshake waiting: a removal ends it.
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
    if (sent.kind === "scope" && !this.#progress.isPending(sent.kind)) this.#release(sent.kind, ALL);
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
    this.#pumpOnDemand();
    for (const kind of kinds) this.#pumpUpdates(kind);
    for (const kind of kinds.toReversed()) this.#pumpRemovals(kind);
    this.#wakeUp();
  }

  /**
   * Marks the on-demand names whose turn it is, and removes the unwanted ones in one response. This
   * comes before everything else, or a flood of new names would leave no room for it.
   */
  #pumpOnDemand(): void {
    const subscription = this.#subscriptions.get("secret");
    if (subscription === undefined || !this.#writable) return;
    for (const name of this.#onDemand.takeDue()) subscription.dirty.add(name);
    for (const name of this.#onDemand.takeExcess()) this.#unwanted.add(name);
    const gone = [...this.#unwanted].filter(
      (name) => subscription.names.has(name) || subscription.clientVersions.has(name),
    );
    this.#unwanted.clear();
    if (gone.length > 0) this.#send(subscription, [], gone, true);
    for (const name of gone) subscription.forget(name);
  }

  #pumpUpdates(kind: XdsKind): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription === undefined) return;
    if (subscription.needsFirstResponse && subscription.wildcard && !this.#sendFirstResponse(subscription))
      return;
    for (const name of subscription.dirty) {
      if (!this.#mayWrite) return;
      const resource = this.#options.store.get(kind, name);
      if (resource === undefined) continue;
      if (subscription.clientVersions.get(name) === resource.version || !subscription.wants(name)) {
        subscription.dirty.delete(name);
        continue;
      }
      const missing = this.#progress.missing(resource);
      subscription.dirty.delete(name);
      if (missing === undefined)
        this.#send(subscription, [resource], [], this.#progress.isUnderWay(kind, name));
      else this.#dependencyWait.hold(resource, missing);
    }
  }

  /** The first response to a wildcard subscription. Returns whether it has been sent. */
  #sendFirstResponse(subscription: Subscription): boolean {
    if (!this.#mayWrite) return false;
    if (subscription.kind === "scope") {
      const all = [...subscription.dirty].flatMap((name) => this.#options.store.get("scope", name) ?? []);
      const incomplete = all.some((resource) => this.#progress.missing(resource) !== undefined);
      if (this.#dependencyWait.putsOff("first response", incomplete)) return false;
      for (const { name } of all) subscription.dirty.delete(name);
      // In parts: Envoy does not free the memory that it needed to read one large message.
      for (let at = 0; at === 0 || at < all.length; at += FIRST_RESPONSE_PART)
        this.#send(subscription, all.slice(at, at + FIRST_RESPONSE_PART), []);
    } else if (subscription.dirty.size === 0) this.#send(subscription, [], []);
    subscription.needsFirstResponse = false;
    return true;
  }

  #pumpRemovals(kind: XdsKind): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription === undefined || subscription.dirty.size === 0) return;
    if (this.#dependencyWait.putsOff(kind, kind !== "secret" && this.#progress.isReferredTo(kind))) return;
    for (const name of subscription.dirty) {
      if (!this.#mayWrite) return;
      if (this.#options.store.get(kind, name) !== undefined) continue;
      subscription.dirty.delete(name);
      if (subscription.clientVersions.has(name) || subscription.names.has(name))
        this.#send(subscription, [], [name]);
      // After a removal Envoy subscribes to an on-demand secret again when a client needs it.
      if (kind !== "secret" || this.#options.store.secrets.isConfigured(name)) continue;
      this.#onDemand.delete(name);
      subscription.forget(name);
    }
  }

  #send(
    subscription: Subscription,
    resources: readonly XdsResource[],
    removed: readonly string[],
    isOnDemand = false,
  ): void {
    const nonce = String(++this.#nonce);
    for (const { name, version, refreshes } of resources) {
      // Also for a new cluster: Envoy does not ask again for endpoints that another cluster has,
      // and would wait for them for ever.
      if (refreshes !== undefined) this.#refresh(refreshes);
      subscription.clientVersions.set(name, version);
    }
    for (const name of removed) {
      subscription.clientVersions.delete(name);
      subscription.settled.delete(name);
    }
    const { kind } = subscription;
    const entries = [...resources, ...removed.map((name) => ({ name }))];
    this.#unanswered.set(nonce, { kind, entries, isOnDemand });
    this.sent += resources.length;
    const encoded = resources.map((resource) => resource.encoded);
    this.#writable = this.#options.write(
      deltaResponse({ typeUrl: urlOf(kind), nonce, resources: encoded, removed }),
    );
  }

  #refresh({ kind, name }: Reference): void {
    const subscription = this.#subscriptions.get(kind);
    if (subscription?.clientVersions.delete(name) === true) subscription.dirty.add(name);
  }

  #release(kind: XdsKind, name: string): void {
    this.#markAll(this.#dependencyWait.release({ kind, name }));
  }

  #markAll(references: readonly Reference[]): void {
    for (const { kind, name } of references) this.#subscription(kind).dirty.add(name);
  }

  /** Sets a timer while something waits for a time limit. */
  #wakeUp(): void {
    clearTimeout(this.#timer);
    const subscriptions = [...this.#subscriptions.values()];
    const waits = subscriptions.some(
      ({ dirty, needsFirstResponse, wildcard }) => dirty.size > 0 || (needsFirstResponse && wildcard),
    );
    if (!waits && this.#dependencyWait.isEmpty && !this.#onDemand.hasWaiting) return;
    this.#timer = setTimeout(() => {
      this.#markAll(this.#dependencyWait.releaseOverdue());
      this.#schedule();
    }, RETRY_MS);
    this.#timer.unref();
  }

  #subscription(kind: XdsKind): Subscription {
    const subscription = this.#subscriptions.get(kind);
    if (subscription === undefined) throw new Error(`nobody has subscribed to ${kind}`);
    return subscription;
  }
}

const RETRY_MS = 100;
/** Scopes in one response. */
const FIRST_RESPONSE_PART = 32;
