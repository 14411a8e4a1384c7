/**
 * One collection of an API server, kept up to date.
 *
 * - list: the newest state, in pages. After a page token has expired, a list without pages.
 * - watch: from the list's version on, with bookmarks, so that an interrupted watch can resume.
 * - 410: the server no longer has that version. List again, also in the middle of a watch.
 * - 404: the collection does not exist, or not any more. The caller decides what that means.
 *
 * After any other failure it tries again, with backoff and jitter.
 */
import { ApiError, hasStatus } from "./api-error.ts";
import type { ApiList, ApiObject } from "./api-object.ts";
import { Backoff, pause } from "./backoff.ts";
import type { KubernetesClient, Query, WatchEvent } from "./client.ts";
import type { KubernetesObserver } from "./observer.ts";

export interface ListWatchTiming {
  readonly pageSize: number;
  /** Each watch asks the server to end it after a random time between this and twice this. */
  readonly watchSeconds: number;
  readonly idleMs: number;
  readonly firstBackoffMs: number;
  readonly mostBackoffMs: number;
}

export const LIST_WATCH_TIMING: ListWatchTiming = {
  pageSize: 500,
  watchSeconds: 300,
  idleMs: 150_000,
  firstBackoffMs: 250,
  mostBackoffMs: 8_000,
};

/** A list page of thousands of large objects, from a busy server. */
const LIST_TIMEOUT_MS = 60_000;

export interface ListWatchOptions<V> {
  readonly client: KubernetesClient;
  readonly path: string;
  /** Label and field selectors. */
  readonly query?: Query;
  /** Ask for metadata only: names and versions of objects whose content is not needed. */
  readonly metadataOnly?: boolean;
  /** What is kept of an object; a whole list is held only in this form. */
  readonly read: (object: ApiObject) => V;
  /** The collection is now exactly this. */
  readonly replace: (values: readonly V[]) => void;
  readonly change: (changes: readonly WatchChange<V>[]) => void;
  /** The collection may not be read; it is tried again nevertheless. */
  readonly onForbidden?: () => void;
  readonly observer?: KubernetesObserver;
  readonly timing?: Partial<ListWatchTiming>;
}

export interface WatchChange<V> {
  readonly type: "set" | "deleted";
  readonly value: V;
}

/**
 * Runs until the signal is aborted (`stopped`) or the server does not know the collection
 * (`absent`).
 */
export async function listWatch<V>(
  options: ListWatchOptions<V>,
  signal: AbortSignal,
): Promise<"stopped" | "absent"> {
  const run = new ListWatch(options, signal);
  return run.run();
}

class ListWatch<V> {
  readonly #options: ListWatchOptions<V>;
  readonly #signal: AbortSignal;
  readonly #timing: ListWatchTiming;
  readonly #backoff: Backoff;
  readonly #accept: { readonly list: string; readonly watch: string };
  /** Where the next watch begins; without it comes a list first. */
  #version: string | undefined;
  #lists = 0;
  /** Times in a row that the server would not go on from our version. */
  #refusals = 0;

  constructor(options: ListWatchOptions<V>, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#timing = { ...LIST_WATCH_TIMING, ...options.timing };
    const { firstBackoffMs: firstMs, mostBackoffMs: mostMs } = this.#timing;
    this.#backoff = new Backoff({ firstMs, mostMs });
    const as = (kind: string): string =>
      options.metadataOnly ? `application/json;as=${kind};g=meta.k8s.io;v=v1` : "application/json";
    this.#accept = { list: as("PartialObjectMetadataList"), watch: as("PartialObjectMetadata") };
  }

  async run(): Promise<"stopped" | "absent"> {
    while (!this.#signal.aborted) {
      try {
        if (this.#version === undefined) await this.#list();
        await this.#watch();
      } catch (error) {
        if (this.#signal.aborted) break;
        if (hasStatus(error, 404)) return "absent";
        await this.#recover(error);
      }
    }
    return "stopped";
  }

  async #list(): Promise<void> {
    const { read, replace, observer, path } = this.#options;
    const values: V[] = [];
    let limit: number | undefined = this.#timing.pageSize;
    let token: string | undefined;
    for (;;) {
      let page: ApiList;
      try {
        page = await this.#page(limit, token);
      } catch (error) {
        if (token === undefined || !hasStatus(error, 410)) throw error;
        values.length = 0;
        token = undefined;
        limit = undefined;
        continue;
      }
      for (const object of page.items ?? []) values.push(read(object));
      token = page.metadata?.continue || undefined;
      if (token === undefined) {
        this.#version = page.metadata?.resourceVersion ?? "";
        break;
      }
    }
    replace(values);
    observer?.onList?.({ resource: path, objects: values.length, again: this.#lists > 0 });
    this.#lists++;
  }

  #page(limit: number | undefined, token: string | undefined): Promise<ApiList> {
    const { client, path, query } = this.#options;
    return client.request<ApiList>({
      path,
      query: { ...query, limit, continue: token },
      accept: this.#accept.list,
      signal: this.#signal,
      timeoutMs: LIST_TIMEOUT_MS,
    });
  }

  async #watch(): Promise<void> {
    const { client, path, query, observer } = this.#options;
    const began = performance.now();
    const seconds = Math.ceil(this.#timing.watchSeconds * (1 + Math.random()));
    const events = client.watch({
      path,
      query: {
        ...query,
        watch: true,
        allowWatchBookmarks: true,
        resourceVersion: this.#version,
        timeoutSeconds: seconds,
      },
      accept: this.#accept.watch,
      signal: this.#signal,
      idleMs: this.#timing.idleMs,
    });
    let count = 0;
    for await (const batch of events) {
      count += batch.length;
      this.#take(batch);
      this.#backoff.reset();
      this.#refusals = 0;
    }
    observer?.onWatchEnd?.({ resource: path, why: "ended" });
    // A server that ends every watch at once must not be asked in a tight loop.
    const short = count === 0 && performance.now() - began < 1_000;
    if (short) await pause(this.#backoff.next(), this.#signal);
    else this.#backoff.reset();
  }

  #take(batch: readonly WatchEvent[]): void {
    const { read, change, observer, path } = this.#options;
    const changes: WatchChange<V>[] = [];
    let failure: ApiError | undefined;
    for (const { type, object } of batch) {
      if (type === "ERROR") {
        failure = ApiError.fromWatchEvent(`watch of ${path}`, object);
        break;
      }
      const version = (object as ApiObject | undefined)?.metadata?.resourceVersion;
      if (version === undefined) throw new Error(`an event of type ${type} without resourceVersion`);
      if (type === "ADDED" || type === "MODIFIED") {
        changes.push({ type: "set", value: read(object as ApiObject) });
      } else if (type === "DELETED") changes.push({ type: "deleted", value: read(object as ApiObject) });
      this.#version = version;
    }
    if (changes.length > 0) change(changes);
    observer?.onWatchEvents?.({ resource: path, count: batch.length });
    if (failure === undefined) return;
    // After any other error with this version, a new list recovers.
    if (failure.status !== 410 && ++this.#refusals > 3) this.#version = undefined;
    throw failure;
  }

  async #recover(error: unknown): Promise<void> {
    const { observer, path } = this.#options;
    const failure = ApiError.fromFailure(path, error);
    observer?.onWatchEnd?.({ resource: path, why: failure.code });
    if (failure.status === 410) {
      this.#version = undefined;
      // The first list comes at once; a server that goes on saying so is given time.
      if (++this.#refusals === 1) return;
    }
    const wait = this.#backoff.next(failure.retryAfterMs);
    if (failure.status === 403) this.#options.onForbidden?.();
    const level = failure.status === 403 ? "error" : "warn";
    observer?.log?.(level, explain(failure), { resource: path, retryInMs: Math.round(wait) });
    await pause(wait, this.#signal);
  }
}

function explain(failure: ApiError): string {
  if (failure.status === 403) return `not permitted to list and watch: ${failure.message}`;
  return `cannot list or watch: ${failure.message}`;
}
