/**
 * The stream to one pod: what must still be sent, and what the pod has not acknowledged yet. A pod
 * that reads slowly later receives the newest version of each item, not a queue of old ones.
 * Nothing is written while the stream is full.
 */
import type { ItemId } from "../../../plan/plan.ts";
import type { ControllerMessage, DeltaMessage, HelloMessage } from "../protocol/protocol.ts";

export interface EncodedItem {
  readonly text: string;
  readonly digest: string;
}

/** The stream to a pod. */
export interface PodChannel {
  /** False when the stream is full. Its owner calls `drained` when it accepts more. */
  write(message: ControllerMessage): boolean;
  /** Ends the stream. The pod will reconnect. */
  close(): void;
}

/** How far a pod is behind, for metrics. */
export interface ReplicaLag {
  readonly gateway: string;
  readonly pod: string;
  /** Items that changed and are not sent yet. */
  readonly unsent: number;
  /** For how long an acknowledgement has been missing; 0 if none is missing. */
  readonly unacknowledgedSeconds: number;
}

const ITEMS_PER_MESSAGE = 256;
const MOST_OWED = 1_000;
const FIRST_ASK_MS = 1_000;
const LAST_ASK_MS = 60_000;

export class Replica {
  /** Gateway and pod: pods of different namespaces may have the same name. */
  readonly id: string;
  readonly gateway: string;
  readonly pod: string;
  readonly address: string;
  readonly channel: PodChannel;
  /** Pods of old versions do not acknowledge: how far they are is not known. */
  readonly acknowledges: boolean;
  readonly protocol: number;
  /** The last digest that the pod sent of what it serves, and since when it is that one. */
  holds: { readonly digest: string; readonly since: number } | undefined;
  /** Since when the digest of the pod's reports has been the same as here. */
  agreesSince: number | undefined;
  readonly #release: string;
  readonly #pending: Set<ItemId> = new Set();
  #blocked = false;
  #serving = false;
  #owesSynced = false;
  /** The newest state that was sent completely, and the newest that the pod acknowledged. */
  #sent = 0;
  #acknowledged = 0;
  /**
   * States that were sent and not acknowledged, with the time when they became due; oldest first.
   */
  readonly #owed: { readonly state: number; readonly since: number }[] = [];
  #unsentSince: number | undefined;
  #askAgainAt = 0;
  #askMs = FIRST_ASK_MS;
  #offerAgainAt = 0;

  constructor(
    channel: PodChannel,
    hello: HelloMessage,
    { address, release }: { readonly address: string; readonly release: string },
  ) {
    this.channel = channel;
    this.address = address;
    this.gateway = hello.gateway;
    this.pod = hello.pod;
    this.id = `${hello.gateway} ${hello.pod}`;
    this.acknowledges = hello.acknowledges === true;
    this.protocol = Number.isSafeInteger(hello.protocol) ? (hello.protocol ?? 1) : 1;
    this.#release = release;
  }

  /** Whether the pod takes its items from this controller. */
  get isServed(): boolean {
    return this.#serving;
  }

  /** The pod was sent everything, and has acknowledged it. */
  get isSettled(): boolean {
    return (
      this.#serving && this.#pending.size === 0 && !this.#owesSynced && this.#acknowledged === this.#sent
    );
  }

  get sent(): number {
    return this.#serving ? this.#sent : Number.POSITIVE_INFINITY;
  }

  get acknowledged(): number {
    return this.#serving && this.acknowledges ? this.#acknowledged : Number.POSITIVE_INFINITY;
  }

  get lag(): ReplicaLag {
    const { gateway, pod } = this;
    const since = this.acknowledges ? (this.#owed[0]?.since ?? this.#unsentSince) : undefined;
    return {
      gateway,
      pod,
      unsent: this.#pending.size,
      unacknowledgedSeconds: since === undefined ? 0 : (performance.now() - since) / 1000,
    };
  }

  /** The pod takes its items from here, from now on. */
  begin(ids: readonly ItemId[], items: ReadonlyMap<ItemId, EncodedItem>, state: number): void {
    this.#serving = true;
    this.#owesSynced = true;
    this.send(ids, items, state);
  }

  drained(items: ReadonlyMap<ItemId, EncodedItem>, state: number): void {
    this.#blocked = false;
    this.send([], items, state);
  }

  /** Sends up to `ITEMS_PER_MESSAGE` items in one message, which the pod applies in one step. */
  send(ids: readonly ItemId[], items: ReadonlyMap<ItemId, EncodedItem>, state: number): void {
    if (!this.#serving) return;
    for (const id of ids) this.#pending.add(id);
    if (this.#pending.size > 0) this.#unsentSince ??= performance.now();
    while (!this.#blocked && (this.#pending.size > 0 || this.#owesSynced)) this.#sendOne(items, state);
  }

  acknowledge(state: number): void {
    if (!Number.isSafeInteger(state) || state <= this.#acknowledged || state > this.#sent) return;
    this.#acknowledged = state;
    while (this.#owed[0] !== undefined && this.#owed[0].state <= state) this.#owed.shift();
  }

  serves(digest: string): void {
    if (this.holds?.digest !== digest) this.holds = { digest, since: performance.now() };
  }

  /**
   * Whether the digest of the pod's reports is the same as here. If not, the pod is asked for all
   * of them, with growing intervals while they stay different.
   */
  compared(agrees: boolean): void {
    const now = performance.now();
    if (agrees) {
      this.agreesSince ??= now;
      this.#askMs = FIRST_ASK_MS;
      return;
    }
    this.agreesSince = undefined;
    if (this.protocol < 2 || now < this.#askAgainAt) return;
    this.#askAgainAt = now + this.#askMs;
    this.#askMs = Math.min(2 * this.#askMs, LAST_ASK_MS);
    this.#write({ type: "tell" });
  }

  offer(intervalMs: number): void {
    const now = performance.now();
    if (this.protocol < 2 || this.#serving || now < this.#offerAgainAt) return;
    this.#offerAgainAt = now + intervalMs;
    this.#write({ type: "offer" });
  }

  #write(message: ControllerMessage): void {
    if (!this.channel.write(message)) this.#blocked = true;
  }

  #sendOne(items: ReadonlyMap<ItemId, EncodedItem>, state: number): void {
    const part: ItemId[] = [];
    for (const id of this.#pending) {
      if (part.length === ITEMS_PER_MESSAGE) break;
      part.push(id);
      this.#pending.delete(id);
    }
    const last = this.#pending.size === 0;
    const synced = last && this.#owesSynced;
    const message: DeltaMessage = {
      type: "delta",
      upserts: part.flatMap((id) => items.get(id)?.text ?? []),
      removes: part.filter((id) => !items.has(id)),
      ...(synced ? { synced } : {}),
      ...(last ? { state } : {}),
      release: this.#release,
    };
    if (synced) this.#owesSynced = false;
    if (last) this.#noteSent(state);
    this.#write(message);
  }

  #noteSent(state: number): void {
    this.#sent = state;
    const since = this.#unsentSince ?? performance.now();
    this.#unsentSince = undefined;
    // The lag of a pod that never acknowledges follows from the oldest entries: keep only those.
    if (this.acknowledges && this.#owed.length < MOST_OWED) this.#owed.push({ state, since });
  }
}
