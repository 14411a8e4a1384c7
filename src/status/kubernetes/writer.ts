/**
 * Writes verdicts into the statuses of objects in the cluster.
 *
 * - Own parts only: read, modify, write with the resourceVersion that was read. After a conflict it
 *   reads again.
 * - Only on change: a status that is right already is not written. A new leader writes only what
 *   differs.
 * - Newest only: one write at a time for an object, with the verdict of that moment.
 * - Gathered: a status that is about to change again waits for a moment (`gathering.ts`).
 * - Competing writers: a status that somebody keeps rewriting is restored at growing intervals, and
 *   that is reported.
 *
 * Every replica feeds it. Only the leader calls `run`.
 */
import { setImmediate } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { type Key, kindOf, partsOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import { ApiError, hasStatus } from "../../kubernetes/api-error.ts";
import { Backoff } from "../../kubernetes/backoff.ts";
import { WriteTokens } from "../scheduling/bucket.ts";
import { type Clock, SYSTEM_CLOCK, sleep } from "../scheduling/clock.ts";
import { STATUS_TIMING, type StatusTiming } from "../scheduling/timing.ts";
import { WorkQueue } from "../scheduling/work-queue.ts";
import type { WriteContent } from "../scheduling/write-throttle.ts";
import { desiredStatus, timestamp } from "./desired-status.ts";
import { type WriteUrgency, writeUrgencyOf } from "./gathering.ts";
import {
  afterAnswer,
  entriesField,
  hasStatusOfOurs,
  isNewer,
  type LiveObject,
  liveObjectOf,
  withoutRecords,
} from "./live-object.ts";
import { changedFields, hasOwnEntry, isWritten } from "./merge-status.ts";
import { isNothing, ownedStatus } from "./ownership.ts";
import { relinquishedFields } from "./relinquish.ts";
import { type DesiredStatus, isEmpty, newEntry, type StatusEntry } from "./status-entry.ts";
import { FIELD_MANAGER, patchStatus, readObject } from "./status-requests.ts";
import type { StatusWrite, StatusWriterOptions } from "./writer-options.ts";

const BREATH_MS = 10;
/** Conflicts in a row before the object is left alone for a while. */
const ATTEMPTS = 5;

export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #timing: StatusTiming;
  readonly #clock: Clock;
  readonly #entries = new Map<Key, StatusEntry>();
  /** First statuses of sets that may be written at once. */
  readonly #firsts: WriteTokens;
  #queue: WorkQueue | undefined;
  #ledSince = 0;
  #graceEnds = 0;

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#timing = { ...STATUS_TIMING, ...options.timing };
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#firsts = new WriteTokens(this.#timing.firstBurst, this.#timing.firstRefillMs, this.#clock.now());
  }

  /** Objects waiting to be looked at, for metrics. */
  get backlog(): number {
    return this.#queue?.size ?? 0;
  }

  /** The object as last known, for whoever must refer to it. */
  live(key: Key): LiveObject | undefined {
    return this.#entries.get(key)?.live;
  }

  /** Takes the newest objects. */
  observe(changes: Iterable<{ readonly key: Key; readonly resource: Resource | undefined }>): void {
    for (const { key, resource } of changes) {
      if (!hasStatusOfOurs(kindOf(key))) continue;
      const entry = this.#entryOf(key);
      if (resource === undefined) {
        delete entry.live;
        delete entry.doubtSince;
        delete entry.dirtySince;
        if (entry.verdict === undefined) this.#entries.delete(key);
        continue;
      }
      const live = liveObjectOf(resource);
      if (entry.live === undefined || isNewer(live, entry.live)) {
        if (this.#queue === undefined) followWrite(entry, live);
        entry.live = live;
        delete entry.doubtSince;
      } else entry.doubtSince = this.#clock.now();
      this.#enqueue(key);
    }
  }

  /**
   * Takes the engine's newest verdicts, and when that was seen which changed them, if it was a
   * change that was watched.
   */
  judge(verdicts: Iterable<readonly [Key, ObjectVerdict | undefined]>, since?: number): void {
    for (const [key, verdict] of verdicts) {
      const entry = this.#entryOf(key);
      if (verdict === undefined) {
        delete entry.verdict;
        if (entry.live === undefined) this.#entries.delete(key);
      } else {
        entry.verdict = verdict;
        entry.wasOurs = true;
        entry.dirtySince ??= this.#clock.now();
        if (since !== undefined && this.#queue !== undefined) entry.since ??= since;
      }
      this.#enqueue(key);
    }
  }

  /** What classes tell of the world has changed: the installed version, or parameters. */
  reconsiderClasses(): void {
    for (const key of this.#entries.keys()) if (kindOf(key) === "GatewayClass") this.#enqueue(key);
  }

  /** Other CRDs may be installed: fields that the server dropped so far are tried again. */
  reconsiderInstallation(): void {
    for (const [key, { normalised }] of this.#entries) if (normalised.forget()) this.#enqueue(key);
    this.reconsiderClasses();
  }

  /** Writes while this replica leads. */
  async run(signal: AbortSignal): Promise<void> {
    const queue = new WorkQueue((key) => partsOf(key).namespace, this.#clock);
    this.#queue = queue;
    this.#ledSince = this.#clock.now();
    this.#graceEnds = this.#ledSince + this.#timing.graceMs;
    for (const [key, entry] of this.#entries) {
      // Whoever led before may have written what no verdict stands behind any more.
      if (entry.verdict === undefined && isWritten(entry.live?.status)) entry.wasOurs = true;
      this.#enqueue(key);
    }
    const end = (): void => queue.close();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await Promise.all(Array.from({ length: this.#timing.concurrency }, () => this.#work(queue, signal)));
    signal.removeEventListener("abort", end);
    if (this.#queue === queue) this.#queue = undefined;
  }

  #entryOf(key: Key): StatusEntry {
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry = newEntry();
    this.#entries.set(key, entry);
    return entry;
  }

  #enqueue(key: Key): void {
    if (this.#queue === undefined) return;
    const entry = this.#entries.get(key);
    if (entry?.live === undefined || !this.#concerns(entry)) return;
    entry.dirtySince ??= this.#clock.now();
    this.#queue.add(key, this.#timing.settleMs);
  }

  #concerns({ verdict, wasOurs, live }: StatusEntry): boolean {
    return verdict !== undefined || wasOurs || hasOwnEntry(live?.status, this.#options.controllerName);
  }

  async #work(queue: WorkQueue, signal: AbortSignal): Promise<void> {
    const trouble = new Backoff({ firstMs: 250, mostMs: 10_000 });
    let breath = this.#clock.now();
    for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
      // A new leader compares everything; its lease and its watches must not wait for that.
      if (this.#clock.now() - breath > BREATH_MS) {
        await setImmediate();
        breath = this.#clock.now();
      }
      try {
        const again = await this.#settle(key, signal);
        if (again < Number.POSITIVE_INFINITY) queue.add(key, again);
        trouble.reset();
      } catch (error) {
        if (!signal.aborted) await this.#recover(key, error, trouble, signal);
      } finally {
        queue.done(key);
      }
    }
  }

  /** Makes the object say what is true now. Returns after how long to look at it again. */
  async #settle(key: Key, signal: AbortSignal): Promise<number> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const entry = this.#entries.get(key);
      if (entry?.live === undefined) return Number.POSITIVE_INFINITY;
      entry.dirtySince ??= this.#clock.now();
      if (this.#doubtLeft(entry) <= 0) {
        delete entry.doubtSince;
        await this.#refresh(key, entry, signal);
      }
      const { verdict } = entry;
      const desired = await this.#desired(key, entry, signal);
      if (desired === undefined || isEmpty(desired)) {
        delete entry.since;
        delete entry.dirtySince;
        return Math.min(this.#doubtLeft(entry), this.#graceLeft(desired));
      }
      if (entry.live !== desired.over || entry.verdict !== verdict) continue;
      const content = this.#contentOf(verdict, desired);
      const wait = this.#waitFor(entry, desired, content);
      if (wait > 0) return Math.min(wait, this.#doubtLeft(entry));
      try {
        await this.#write(key, entry, { ...desired, verdict, content }, signal);
        return Math.min(this.#doubtLeft(entry), this.#graceLeft(desired));
      } catch (error) {
        if (!hasStatus(error, 409)) throw error;
        this.#options.observer?.onStatusWrite?.({ kind: kindOf(key), result: "conflict" });
        await this.#refresh(key, entry, signal);
      }
    }
    const message = `${key} changes faster than it can be written`;
    throw new ApiError({ status: 409, code: "Conflict", message });
  }

  /** A watch that goes on showing an older object may be right: a database can be restored. */
  #doubtLeft({ doubtSince }: StatusEntry): number {
    if (doubtSince === undefined) return Number.POSITIVE_INFINITY;
    return doubtSince + this.#timing.doubtMs - this.#clock.now();
  }

  #graceLeft(desired: DesiredStatus | undefined): number {
    return desired?.keeps ? Math.max(0, this.#graceEnds - this.#clock.now()) : Number.POSITIVE_INFINITY;
  }

  #contentOf(verdict: ObjectVerdict | undefined, { over, keeps }: DesiredStatus): WriteContent {
    return { uid: over.metadata.uid, said: [verdict, this.#options.installed(), keeps] };
  }

  #waitFor(entry: StatusEntry, desired: DesiredStatus, content: WriteContent): number {
    const now = this.#clock.now();
    return Math.max(entry.throttle.rest(content, now, this.#timing), this.#gathering(entry, desired, now));
  }

  /** How long to wait for what is about to change as well. */
  #gathering(entry: StatusEntry, { over, fields }: DesiredStatus, now: number): number {
    const urgency = writeUrgencyOf(over.status, fields);
    if (urgency === "counts") delete entry.since;
    const left = this.#dirtySince(entry, urgency, now) + this.#timing.gatherMs - now;
    if (left <= 0) return 0;
    if (urgency !== "final") return left;
    const isFirst = entry.verdict?.type === "set" && !isWritten(over.status);
    return isFirst && !this.#firsts.take(now) ? left : 0;
  }

  /**
   * A status that has waited under another leader does not wait anew. Only what is not confirmed
   * does: pods may be about to tell a new leader.
   */
  #dirtySince({ dirtySince }: StatusEntry, urgency: WriteUrgency, now: number): number {
    if (dirtySince === undefined) return now;
    return urgency === "unfinished" ? Math.max(dirtySince, this.#ledSince) : dirtySince;
  }

  async #desired(key: Key, entry: StatusEntry, signal: AbortSignal): Promise<DesiredStatus | undefined> {
    const { verdict } = entry;
    if (verdict === undefined) return this.#relinquished(key, entry, signal);
    const desired = this.#desiredNow(key, entry, verdict);
    if (desired === undefined || verdict.type !== "set" || !verdict.orphan) return desired;
    // A set without Gateway is nobody's: its status is corrected only where it is we who made it.
    if (isEmpty(desired) || !isWritten(desired.over.status)) return undefined;
    const fresh = await this.#refresh(key, entry, signal);
    const owned = ownedStatus(fresh?.metadata.managedFields, FIELD_MANAGER);
    return isNothing(owned) ? undefined : this.#desiredNow(key, entry, verdict);
  }

  #desiredNow(key: Key, entry: StatusEntry, verdict: ObjectVerdict): DesiredStatus | undefined {
    const isGrace = this.#graceEnds > this.#clock.now();
    return desiredStatus(key, entry, verdict, { ...this.#options, isGrace, date: this.#clock.date() });
  }

  /**
   * The status of an object that has no verdict any more. Our entries are removed. Of a Gateway or
   * set, the fields are removed that managedFields records as ours.
   */
  async #relinquished(key: Key, entry: StatusEntry, signal: AbortSignal): Promise<DesiredStatus | undefined> {
    const { live } = entry;
    if (live === undefined) return undefined;
    const entries = entriesField(kindOf(key));
    if (entries !== undefined) {
      const fields = changedFields(live.status, { [entries]: [] }, this.#options.controllerName);
      return { over: live, fields, keeps: false };
    }
    if (kindOf(key) === "GatewayClass" || !isWritten(live.status)) return undefined;
    const fresh = await this.#refresh(key, entry, signal);
    const over = entry.live;
    if (fresh === undefined || over === undefined || entry.verdict !== undefined) return undefined;
    // The watch was faster, and has asked for another look.
    if (over.metadata.resourceVersion !== fresh.metadata.resourceVersion) return undefined;
    const owned = ownedStatus(fresh.metadata.managedFields, FIELD_MANAGER);
    const fields = relinquishedFields(fresh.status, owned, timestamp(this.#clock.date()));
    const desired = { over, fields, keeps: false };
    if (isEmpty(desired)) entry.wasOurs = false;
    return desired;
  }

  /**
   * The object as it is now. Where it is not found it is asked for again, until the watch says that
   * it is deleted: an API server that has just begun does not find what it does not serve yet.
   */
  async #refresh(key: Key, entry: StatusEntry, signal: AbortSignal): Promise<LiveObject | undefined> {
    const { live } = entry;
    if (live === undefined) return undefined;
    const fresh = await readObject(this.#options.client, key, live, signal);
    this.#take(entry, live, withoutRecords(fresh));
    return fresh;
  }

  #take(entry: StatusEntry, known: LiveObject, answer: LiveObject): void {
    const live = afterAnswer(entry.live, known, answer);
    if (live !== undefined) entry.live = live;
  }

  async #write(
    key: Key,
    entry: StatusEntry,
    write: DesiredStatus & { readonly verdict: ObjectVerdict | undefined; readonly content: WriteContent },
    signal: AbortSignal,
  ): Promise<void> {
    const { over, fields, verdict, content } = write;
    const began = this.#clock.now();
    const after = withoutRecords(await patchStatus(this.#options.client, key, { over, fields }, signal));
    entry.normalised.learn(fields, after.status);
    this.#take(entry, over, after);
    delete entry.backoff;
    if (entry.verdict === verdict) delete entry.dirtySince;
    else entry.dirtySince = began;
    this.#tell(key, entry, { key, verdict, before: over, after }, content);
  }

  #tell(key: Key, entry: StatusEntry, write: StatusWrite, content: WriteContent): void {
    const { observer, onWrite, onContested } = this.#options;
    const kind = kindOf(key);
    const now = this.#clock.now();
    const times = entry.throttle.written(content, now, this.#timing);
    if (times > 0) {
      observer?.onStatusContested?.({ kind });
      onContested?.({ key, live: write.after, times });
    }
    if (entry.since !== undefined) {
      observer?.onStatusTold?.({ kind, seconds: (now - entry.since) / 1000 });
      delete entry.since;
    }
    observer?.onStatusWrite?.({ kind, result: "written" });
    onWrite?.(write);
  }

  async #recover(key: Key, error: unknown, trouble: Backoff, signal: AbortSignal): Promise<void> {
    const { observer } = this.#options;
    const failure = ApiError.fromFailure(key, error);
    const entry = this.#entries.get(key);
    observer?.onStatusWrite?.({ kind: kindOf(key), result: "failed" });
    if (entry === undefined) return;
    const isServer = failure.status === 0 || failure.status === 429 || failure.status >= 500;
    const { firstBackoffMs: firstMs, mostBackoffMs: mostMs } = this.#timing;
    entry.backoff ??= new Backoff({ firstMs, mostMs });
    const wait = isServer ? trouble.next(failure.retryAfterMs) : entry.backoff.next();
    // Most that are not found are being deleted, and the watch is about to say so.
    const level = failure.status === 404 ? "debug" : "warn";
    observer?.log?.(level, `status of ${key}: ${failure.message}`, { retryInMs: Math.round(wait) });
    this.#queue?.add(key, wait);
    // A server in trouble is left alone by the whole worker, not only for this object.
    if (isServer) await sleep(this.#clock, wait, signal);
  }
}

/** The leader has written: what this replica has judged so far is taken to be in it. */
function followWrite(entry: StatusEntry, live: LiveObject): void {
  if (!isDeepStrictEqual(entry.live?.status, live.status)) delete entry.dirtySince;
}
