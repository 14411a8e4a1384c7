/**
 * How far one Envoy is: what it has subscribed to, what it has been sent, what it has answered for,
 * and what a resource therefore has to wait for.
 */
import { type DependencyWait, referenceKey } from "./dependency-wait.ts";
import type { OnDemandNames } from "./on-demand-names.ts";
import { ALL, kinds, type Reference, type XdsKind, type XdsResource } from "./resource.ts";
import type { ResourceStore } from "./resource-store.ts";
import type { Subscription } from "./subscription.ts";

/** A response that waits for its ACK or NACK. */
export interface Sent {
  readonly kind: XdsKind;
  /** Without a version: removed. */
  readonly entries: readonly { readonly name: string; readonly version?: string }[];
  /** The first response for on-demand names; it has no name that is configured. */
  readonly isOnDemand: boolean;
}

/** What a stream keeps, and changes itself. */
interface StreamParts {
  readonly store: ResourceStore;
  readonly subscriptions: ReadonlyMap<XdsKind, Subscription>;
  /** By nonce, the oldest first. */
  readonly unanswered: ReadonlyMap<string, Sent>;
  readonly onDemand: OnDemandNames;
  readonly dependencyWait: DependencyWait;
  readonly lastNonce: () => number;
}

export class StreamProgress {
  readonly #parts: StreamParts;

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  /**
   * Envoy has answered for everything that it subscribed to. First responses for on-demand names do
   * not count: any client can cause more of them at any time.
   */
  get settled(): boolean {
    return (
      this.#parts.dependencyWait.isEmpty &&
      this.#hasFirstResponses &&
      this.#parts.unanswered.values().every(({ isOnDemand }) => isOnDemand) &&
      this.#parts.subscriptions
        .values()
        .every(({ kind, dirty }) => dirty.values().every((name) => this.isUnderWay(kind, name)))
    );
  }

  /** The first response for an on-demand name. */
  isUnderWay(kind: XdsKind, name: string): boolean {
    return kind === "secret" && this.#parts.onDemand.isUnderWay(name);
  }

  /**
   * Marks the current configuration. The returned function says whether Envoy has answered for all
   * of it. Later changes do not count. Neither do on-demand names, which any client can ask for,
   * nor removals of clusters and endpoints that nothing refers to any more.
   */
  mark(): () => boolean {
    const versionOf = ({ kind, name }: Reference): string | undefined =>
      this.#parts.subscriptions.get(kind)?.clientVersions.get(name);
    const before = new Map(
      Array.from(this.#unsent(), ([key, each]) => [key, { ...each, version: versionOf(each) }]),
    );
    let last: number | undefined;
    return () => {
      if (!this.#hasFirstResponses) return false;
      const unsent = before.size === 0 ? before : this.#unsent();
      for (const [key, each] of before)
        if (!unsent.has(key) || versionOf(each) !== each.version) before.delete(key);
      if (before.size > 0) return false;
      last ??= this.#parts.lastNonce();
      const [oldest] = this.#parts.unanswered.keys();
      return oldest === undefined || Number(oldest) > last;
    };
  }

  get #hasFirstResponses(): boolean {
    if (!this.#parts.subscriptions.has("listener")) return false;
    return [...this.#parts.subscriptions.values()].every(({ needsFirstResponse }) => !needsFirstResponse);
  }

  #unsent(): Map<string, Reference> {
    const { store } = this.#parts;
    const unsent = new Map(
      Array.from(this.#parts.dependencyWait.waiting(), (each) => [referenceKey(each), each]),
    );
    for (const { kind, dirty } of this.#parts.subscriptions.values()) {
      for (const name of dirty) {
        if (kind === "secret" && !store.secrets.isConfigured(name)) continue;
        if ((kind === "cluster" || kind === "endpoints") && store.get(kind, name) === undefined) continue;
        unsent.set(referenceKey({ kind, name }), { kind, name });
      }
    }
    return unsent;
  }

  /** A kind that comes later in the order, and so may refer to this one, still has changes. */
  isReferredTo(kind: XdsKind): boolean {
    const later = new Set(kinds.slice(kinds.indexOf(kind) + 1));
    if (kind === "cluster") later.delete("endpoints");
    for (const sent of this.#parts.unanswered.values()) if (later.has(sent.kind)) return true;
    if (this.#parts.dependencyWait.isWaiting((each) => later.has(each))) return true;
    return [...later].some((each) => (this.#parts.subscriptions.get(each)?.dirty.size ?? 0) > 0);
  }

  /** The first resource that this one refers to and Envoy has not answered for. */
  missing(resource: XdsResource): Reference | undefined {
    if (this.#parts.dependencyWait.takeOverdue(resource)) return undefined;
    return resource.needs.find(({ kind, name }) => {
      if (name === ALL) return this.isPending(kind);
      const subscription = this.#parts.subscriptions.get(kind);
      return subscription?.settled.has(name) !== true && this.#parts.store.get(kind, name) !== undefined;
    });
  }

  /**
   * Envoy has not yet answered for all resources of the kind. Removals do not count: they wait for
   * other kinds themselves.
   */
  isPending(kind: XdsKind): boolean {
    const subscription = this.#parts.subscriptions.get(kind);
    if (subscription === undefined || subscription.needsFirstResponse) return true;
    for (const name of subscription.dirty) if (this.#parts.store.get(kind, name) !== undefined) return true;
    for (const sent of this.#parts.unanswered.values()) {
      if (sent.kind === kind && sent.entries.some(({ version }) => version !== undefined)) return true;
    }
    return this.#parts.dependencyWait.isWaiting((each) => each === kind);
  }
}
