/**
 * One pod at the other end of a stream: what it must still be sent, and what it has not acknowledged yet. A pod that reads slowly is sent the newest state of each
 * item when it reads again, never a queue of old ones, and never more than the stream takes.
 */
import type { ServerHttp2Stream } from "node:http2";
import type { ItemId } from "../../plan/plan.ts";
import type { ControllerMessage, PodMessage } from "./protocol.ts";

export interface EncodedItem {
  readonly text: string;
  readonly digest: string;
}

/** What is behind at a pod, for metrics. */
export interface ReplicaLag {
  readonly gateway: string;
  readonly pod: string;
  /** Items that changed and are not sent yet. */
  readonly unsent: number;
  /** Since when the pod owes an acknowledgement; 0 when it owes none. */
  readonly unacknowledgedSeconds: number;
}

const ITEMS_PER_MESSAGE = 256;
const MOST_OWED = 1_000;

export class Replica {
  /** Pods of different namespaces may bear the same name. */
  readonly id: string;
  readonly gateway: string;
  readonly pod: string;
  readonly address: string;
  readonly stream: ServerHttp2Stream;
  /** Old pods do not acknowledge; nothing is known of how far they are. */
  readonly acknowledges: boolean;
  readonly #pending: Set<ItemId> = new Set();
  #blocked = false;
  #serving = false;
  #owesSynced = false;
  /** The newest state that the pod was told of, whole, and the newest that it says it has. */
  #sent = 0;
  #acknowledged = 0;
  /** What was sent and not acknowledged, with the time since when it was to be sent; the oldest first. */
  readonly #owed: { readonly state: number; readonly since: number }[] = [];
  #unsentSince: number | undefined;

  constructor(
    stream: ServerHttp2Stream,
    address: string,
    hello: Extract<PodMessage, { readonly type: "hello" }>,
  ) {
    this.stream = stream;
    this.address = address;
    this.gateway = hello.gateway;
    this.pod = hello.pod;
    this.id = `${hello.gateway} ${hello.pod}`;
    this.acknowledges = hello.acknowledges === true;
  }

  /** Whether this controller is the one that the pod takes its items from. */
  get isServed(): boolean {
    return this.#serving;
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

  /** A delta of up to so many items is one message, so that the pod applies it in one step. */
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

  #sendOne(items: ReadonlyMap<ItemId, EncodedItem>, state: number): void {
    const part: ItemId[] = [];
    for (const id of this.#pending) {
      if (part.length === ITEMS_PER_MESSAGE) break;
      part.push(id);
      this.#pending.delete(id);
    }
    const last = this.#pending.size === 0;
    const synced = last && this.#owesSynced;
    const message: ControllerMessage = {
      type: "delta",
      upserts: part.flatMap((id) => items.get(id)?.text ?? []),
      removes: part.filter((id) => !items.has(id)),
      ...(synced ? { synced } : {}),
      ...(last ? { state } : {}),
    };
    if (synced) this.#owesSynced = false;
    if (last) this.#noteSent(state);
    if (!this.stream.write(`${JSON.stringify(message)}\n`)) this.#blocked = true;
  }
  #noteSent(state: number): void {
    this.#sent = state;
    const since = this.#unsentSince ?? performance.now();
    this.#unsentSince = undefined;
    // Of a pod that never acknowledges, the oldest ones tell enough.
    if (this.acknowledges && this.#owed.length < MOST_OWED) this.#owed.push({ state, since });
  }
}
