/**
 * Writes verdicts into the cluster.
 *   own parts only   read, modify, write under the version that was read; a conflict reads again
 *   only on change   what the object already says is not written, so a new leader writes nothing that is already true
 *   newest only      one write at a time for an object, of whatever is true by then
 *   no fights        what somebody keeps rewriting is written again ever more rarely, and that is reported
 * Every replica feeds it; only the one that leads calls `run`.
 */
import { setImmediate } from "node:timers/promises";
import { type Key, kindOf, partsOf } from "../../api/key.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import type { ObjectVerdict } from "../../engine/verdicts.ts";
import { ApiError, hasStatus } from "../../kubernetes/api-error.ts";
import { Backoff, pause } from "../../kubernetes/backoff.ts";
import { type KubernetesClient, MERGE_PATCH } from "../../kubernetes/client.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import { renderStatus } from "../render.ts";
import { type InstalledApi, supportedFeatures, supportedVersion } from "./gateway-class.ts";
import { unsaysForNow } from "./grace.ts";
import {
  entriesField,
  type Held,
  hasStatusOfOurs,
  heldOf,
  isNewer,
  Normalised,
  pathOf,
  withoutRecords,
} from "./held.ts";
import { changedFields, hasOwnEntry, isWritten, type Status } from "./merge-status.ts";
import { isNothing, ownedStatus } from "./ownership.ts";
import { Pace, type PaceTiming } from "./pace.ts";
import { relinquishedFields } from "./relinquish.ts";
import { WorkQueue } from "./work-queue.ts";

export interface StatusWriterOptions {
  readonly client: KubernetesClient;
  readonly controllerName: string;
  /** What the data plane of a GatewayClass, by name, supports. */
  readonly features: (gatewayClass: string) => ReadonlySet<string>;
  readonly installed: () => InstalledApi;
  readonly onWrite?: (write: StatusWrite) => void;
  /** Somebody keeps changing what we write; called again each time it is written anew. */
  readonly onFight?: (fight: { readonly key: Key; readonly held: Held; readonly times: number }) => void;
  readonly observer?: KubernetesObserver & StatusObserver;
  readonly timing?: Partial<StatusTiming>;
}

export interface StatusObserver {
  readonly onStatusWrite?: (write: {
    readonly kind: Kind;
    readonly result: "written" | "conflict" | "failed";
  }) => void;
  /** What was already written had to be written again. */
  readonly onStatusFight?: (fight: { readonly kind: Kind }) => void;
  /** The effect of a change that was watched stands in a status, so long after it was seen. */
  readonly onStatusTold?: (told: { readonly kind: Kind; readonly seconds: number }) => void;
}

export interface StatusWrite {
  readonly key: Key;
  readonly verdict: ObjectVerdict | undefined;
  readonly before: Held;
  readonly after: Held;
}

export interface StatusTiming extends PaceTiming {
  readonly concurrency: number;
  /** How long news of one object are gathered. */
  readonly settleMs: number;
  readonly firstBackoffMs: number;
  readonly mostBackoffMs: number;
  /** For so long after a leader has begun it does not unsay what it may only not know yet. */
  readonly graceMs: number;
}

const TIMING: StatusTiming = {
  concurrency: 8,
  settleMs: 10,
  intervalMs: 200,
  firstBackoffMs: 500,
  mostBackoffMs: 60_000,
  graceMs: 15_000,
  fightMs: 1_000,
  mostFightMs: 300_000,
};

export const FIELD_MANAGER = "mergeway";
const BREATH_MS = 10;
/** Conflicts in a row before the object is left alone for a while. */
const ATTEMPTS = 5;

interface Entry {
  held?: Held;
  verdict?: ObjectVerdict;
  /** The engine had a verdict once, or may have had one before this process began. */
  wasOurs: boolean;
  readonly pace: Pace;
  readonly normalised: Normalised;
  backoff?: Backoff;
  /** When the first change was seen whose effect is not written yet. */
  since?: number;
}

/** What to write, and over which version of the object. */
interface Wish {
  readonly over: Held;
  readonly fields: Status;
}

export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #timing: StatusTiming;
  readonly #entries = new Map<Key, Entry>();
  #queue: WorkQueue | undefined;
  #graceEnds = 0;

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
  }

  /** Objects waiting to be looked at, for metrics. */
  get backlog(): number {
    return this.#queue?.size ?? 0;
  }

  /** The object as last known, for whoever must refer to it. */
  held(key: Key): Held | undefined {
    return this.#entries.get(key)?.held;
  }

  /** Takes the newest objects. */
  observe(changes: Iterable<{ readonly key: Key; readonly resource: Resource | undefined }>): void {
    for (const { key, resource } of changes) {
      if (!hasStatusOfOurs(kindOf(key))) continue;
      const entry = this.#entryOf(key);
      if (resource === undefined) {
        delete entry.held;
        if (entry.verdict === undefined) this.#entries.delete(key);
        continue;
      }
      const held = heldOf(resource);
      if (entry.held === undefined || isNewer(held, entry.held)) entry.held = held;
      this.#enqueue(key);
    }
  }

  /** Takes the engine's newest verdicts, and when that was seen which changed them, if it was a change that was watched. */
  judge(verdicts: Iterable<readonly [Key, ObjectVerdict | undefined]>, since?: number): void {
    for (const [key, verdict] of verdicts) {
      const entry = this.#entryOf(key);
      if (verdict === undefined) {
        delete entry.verdict;
        if (entry.held === undefined) this.#entries.delete(key);
      } else {
        entry.verdict = verdict;
        entry.wasOurs = true;
        if (since !== undefined && this.#queue !== undefined) entry.since ??= since;
      }
      this.#enqueue(key);
    }
  }

  /** Something outside the objects has changed that classes tell: the installed version. */
  reconsiderClasses(): void {
    for (const key of this.#entries.keys()) if (kindOf(key) === "GatewayClass") this.#enqueue(key);
  }

  /** Writes while this replica leads. */
  async run(signal: AbortSignal): Promise<void> {
    const queue = new WorkQueue((key) => partsOf(key).namespace);
    this.#queue = queue;
    this.#graceEnds = performance.now() + this.#timing.graceMs;
    for (const [key, entry] of this.#entries) {
      // Whoever led before may have written what no verdict stands behind any more.
      if (entry.verdict === undefined && isWritten(entry.held?.status)) entry.wasOurs = true;
      this.#enqueue(key);
    }
    const end = (): void => queue.close();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await Promise.all(Array.from({ length: this.#timing.concurrency }, () => this.#work(queue, signal)));
    signal.removeEventListener("abort", end);
    this.#queue = undefined;
  }

  #entryOf(key: Key): Entry {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { wasOurs: false, pace: new Pace(), normalised: new Normalised() };
      this.#entries.set(key, entry);
    }
    return entry;
  }

  #enqueue(key: Key): void {
    if (this.#queue === undefined) return;
    const entry = this.#entries.get(key);
    if (entry?.held === undefined || !this.#concerns(entry)) return;
    this.#queue.add(key, Math.max(this.#timing.settleMs, entry.pace.rest()));
  }

  #concerns({ verdict, wasOurs, held }: Entry): boolean {
    return verdict !== undefined || wasOurs || hasOwnEntry(held?.status, this.#options.controllerName);
  }

  async #work(queue: WorkQueue, signal: AbortSignal): Promise<void> {
    const trouble = new Backoff({ firstMs: 250, mostMs: 10_000 });
    let breath = performance.now();
    for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
      // A new leader compares everything; its lease and its watches must not wait for that.
      if (performance.now() - breath > BREATH_MS) {
        await setImmediate();
        breath = performance.now();
      }
      try {
        await this.#settle(key, signal);
        trouble.reset();
      } catch (error) {
        if (!signal.aborted) await this.#recover(key, error, trouble, signal);
      } finally {
        queue.done(key);
      }
    }
  }

  /** Makes the object say what is true now, if it does not. */
  async #settle(key: Key, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const entry = this.#entries.get(key);
      if (entry?.held === undefined) return;
      const { verdict } = entry;
      const wish = await this.#wish(key, entry, signal);
      if (wish === undefined) {
        delete entry.since;
        return;
      }
      if (entry.held !== wish.over || entry.verdict !== verdict) continue;
      const rest = Math.max(entry.pace.rest(), this.#graceFor(entry, wish));
      if (rest > 0) {
        this.#queue?.add(key, rest);
        return;
      }
      try {
        const after = await this.#patch(key, wish, signal);
        this.#written(key, entry, { fields: wish.fields, before: wish.over, after, verdict });
        return;
      } catch (error) {
        if (!hasStatus(error, 409)) throw error;
        this.#options.observer?.onStatusWrite?.({ kind: kindOf(key), result: "conflict" });
        await this.#refresh(key, entry, signal);
      }
    }
    const message = `${key} changes faster than it can be written`;
    throw new ApiError({ status: 409, code: "Conflict", message });
  }

  #graceFor({ verdict }: Entry, { over, fields }: Wish): number {
    const left = this.#graceEnds - performance.now();
    return left > 0 && verdict !== undefined && unsaysForNow(over.status, fields) ? left : 0;
  }

  async #wish(key: Key, entry: Entry, signal: AbortSignal): Promise<Wish | undefined> {
    const { verdict } = entry;
    if (verdict === undefined) return this.#farewell(key, entry, signal);
    const wish = this.#wishOf(key, entry, verdict);
    if (wish === undefined || verdict.type !== "set" || !verdict.orphan) return wish;
    // A set without Gateway is nobody's: its status is corrected only where it is we who made it.
    if (!isWritten(wish.over.status)) return undefined;
    const fresh = await this.#refresh(key, entry, signal);
    const owned = ownedStatus(fresh?.metadata.managedFields, FIELD_MANAGER);
    return isNothing(owned) ? undefined : this.#wishOf(key, entry, verdict);
  }

  #wishOf(key: Key, { held, normalised }: Entry, verdict: ObjectVerdict): Wish | undefined {
    // The verdict on the newer generation is on its way.
    if (held === undefined || verdict.generation < (held.metadata.generation ?? 0)) return undefined;
    const rendered = this.#render(kindOf(key), verdict, held);
    const changed = changedFields(held.status, rendered, this.#options.controllerName);
    return wishFor(held, normalised.without(changed, held.status));
  }

  #render(kind: Kind, verdict: ObjectVerdict, held: Held): Status {
    const { controllerName, features, installed } = this.#options;
    const options = { controllerName, now: now() };
    const object = { kind, status: held.status } as unknown as Resource;
    if (verdict.type !== "class") return renderStatus(object, verdict, options);
    const conditions = [...verdict.conditions, supportedVersion(installed())];
    return {
      ...renderStatus(object, { ...verdict, conditions }, options),
      ...supportedFeatures(features(held.metadata.name), installed()),
    };
  }

  /** An object that nothing can be said of any more: our entries go; of a Gateway or set, what is recorded as written by us. */
  async #farewell(key: Key, entry: Entry, signal: AbortSignal): Promise<Wish | undefined> {
    const { held } = entry;
    if (held === undefined) return undefined;
    const entries = entriesField(kindOf(key));
    if (entries !== undefined) {
      return wishFor(held, changedFields(held.status, { [entries]: [] }, this.#options.controllerName));
    }
    if (kindOf(key) === "GatewayClass" || !isWritten(held.status)) return undefined;
    const fresh = await this.#refresh(key, entry, signal);
    if (fresh === undefined || entry.held === undefined || entry.verdict !== undefined) return undefined;
    const owned = ownedStatus(fresh.metadata.managedFields, FIELD_MANAGER);
    const wish = wishFor(entry.held, relinquishedFields(fresh.status, owned, now()));
    if (wish === undefined) entry.wasOurs = false;
    return wish;
  }

  /** The object as it is now; undefined when the watch has said that it is gone. */
  async #refresh(key: Key, entry: Entry, signal: AbortSignal): Promise<Held | undefined> {
    const held = entry.held;
    if (held === undefined) return undefined;
    const fresh = await this.#options.client.request<Held>({ path: pathOf(key, held), signal });
    const taken = { ...fresh, apiVersion: held.apiVersion };
    if (this.#entries.get(key) === entry) entry.held = withoutRecords(taken);
    return taken;
  }

  async #patch(key: Key, { over, fields }: Wish, signal: AbortSignal): Promise<Held> {
    const { resourceVersion } = over.metadata;
    const answer = await this.#options.client.request<Held>({
      method: "PATCH",
      path: pathOf(key, over, "status"),
      query: { fieldManager: FIELD_MANAGER },
      contentType: MERGE_PATCH,
      body: { metadata: { resourceVersion }, status: fields },
      signal,
    });
    return withoutRecords({ ...answer, apiVersion: over.apiVersion });
  }

  #written(
    key: Key,
    entry: Entry,
    { fields, before, after, verdict }: Omit<StatusWrite, "key"> & { readonly fields: Status },
  ): void {
    const { observer, onWrite, onFight, installed } = this.#options;
    entry.normalised.learn(fields, after.status);
    if (entry.held === undefined || isNewer(after, entry.held)) entry.held = after;
    delete entry.backoff;
    const times = entry.pace.written(
      after.metadata.uid,
      JSON.stringify([verdict, installed()]),
      this.#timing,
    );
    if (times > 0) {
      observer?.onStatusFight?.({ kind: kindOf(key) });
      onFight?.({ key, held: after, times });
    }
    if (entry.since !== undefined) {
      observer?.onStatusTold?.({ kind: kindOf(key), seconds: (performance.now() - entry.since) / 1000 });
      delete entry.since;
    }
    observer?.onStatusWrite?.({ kind: kindOf(key), result: "written" });
    onWrite?.({ key, verdict, before, after });
  }

  async #recover(key: Key, error: unknown, trouble: Backoff, signal: AbortSignal): Promise<void> {
    const { observer } = this.#options;
    const failure = ApiError.fromFailure(key, error);
    const entry = this.#entries.get(key);
    observer?.onStatusWrite?.({ kind: kindOf(key), result: "failed" });
    // Deleted, and the watch has said so.
    if (entry?.held === undefined) return;
    const isServer = failure.status === 0 || failure.status === 429 || failure.status >= 500;
    const { firstBackoffMs: firstMs, mostBackoffMs: mostMs } = this.#timing;
    entry.backoff ??= new Backoff({ firstMs, mostMs });
    const wait = isServer ? trouble.next(failure.retryAfterMs) : entry.backoff.next();
    // Deleted, as a rule. But a server that has just started does not know its CRDs yet: only the
    // watch says that an object is gone.
    const level = failure.status === 404 ? "debug" : "warn";
    observer?.log?.(level, `status of ${key}: ${failure.message}`, { retryInMs: Math.round(wait) });
    this.#queue?.add(key, wait);
    // A server in trouble is left alone by the whole worker, not only for this object.
    if (isServer) await pause(wait, signal);
  }
}

function wishFor(over: Held, fields: Status): Wish | undefined {
  return Object.keys(fields).length === 0 ? undefined : { over, fields };
}

/** Go programs keep whole seconds when they write a status back; anything finer would look like a change. */
function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}
