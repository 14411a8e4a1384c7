/**
 * Objects of which only those of use are read. A watch of metadata alone tells when one of them has
 * changed; its content is fetched then, and nothing is kept of any other. An object is also fetched
 * when it is first wanted, whatever the watch has said so far: the two are not in step.
 */
import { type Key, partsOf } from "../../api/key.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import { ApiError } from "../../kubernetes/api-error.ts";
import { type ApiObject, objectPath } from "../../kubernetes/api-object.ts";
import { Backoff, pause } from "../../kubernetes/backoff.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import { PLURAL_OF_KIND } from "../../kubernetes/kinds.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import type { Shaped } from "./shape.ts";

export interface OnDemandOptions {
  readonly client: KubernetesClient;
  readonly shape: (kind: Kind, object: ApiObject) => Shaped;
  readonly emit: (key: Key, resource: Resource | undefined) => void;
  /** This object has been read for the first time, or nothing wants it any more. */
  readonly onRead: (key: Key) => void;
  /** Whether the object's namespace is one that may be read. */
  readonly isReadable: (namespace: string) => boolean;
  readonly observer?: KubernetesObserver;
  readonly signal: AbortSignal;
}

interface Wanted {
  /** The version that was last read; empty when the object is not there. */
  version: string | undefined;
  fetching: boolean;
  /** Something happened while a fetch was under way. */
  again: boolean;
}

const FETCHES_AT_ONCE = 16;

export class OnDemand {
  readonly #options: OnDemandOptions;
  readonly #wanted = new Map<Key, Wanted>();
  readonly #queue: Key[] = [];
  readonly #unread = new Set<Key>();
  #running = 0;

  constructor(options: OnDemandOptions) {
    this.#options = options;
  }

  /** Objects that are wanted and have not been read yet. */
  get unread(): ReadonlySet<Key> {
    return this.#unread;
  }

  want(key: Key): void {
    if (this.#wanted.has(key)) return;
    if (!this.#options.isReadable(partsOf(key).namespace)) return;
    this.#wanted.set(key, { version: undefined, fetching: false, again: false });
    this.#unread.add(key);
    this.#enqueue(key);
  }

  unwant(key: Key): void {
    const wanted = this.#wanted.get(key);
    if (wanted === undefined) return;
    this.#wanted.delete(key);
    this.#read(key);
    if (wanted.version) this.#options.emit(key, undefined);
  }

  /** The watch of metadata has seen this version (empty: the object is gone). */
  announce(key: Key, version: string): void {
    const wanted = this.#wanted.get(key);
    if (wanted === undefined) return;
    // A fetch that is under way may bring an older state than the watch has seen.
    if (wanted.fetching || wanted.version !== version) this.#enqueue(key);
  }

  /** A whole list of metadata: what is not in it, below the namespace or anywhere, is gone. */
  announceAll(versions: ReadonlyMap<Key, string>, isInScope: (key: Key) => boolean): void {
    for (const key of this.#wanted.keys()) if (isInScope(key)) this.announce(key, versions.get(key) ?? "");
  }

  #enqueue(key: Key): void {
    const wanted = this.#wanted.get(key);
    if (wanted === undefined) return;
    if (wanted.fetching) {
      wanted.again = true;
      return;
    }
    wanted.fetching = true;
    this.#queue.push(key);
    this.#pump();
  }

  #pump(): void {
    while (this.#running < FETCHES_AT_ONCE) {
      const key = this.#queue.shift();
      if (key === undefined) return;
      this.#running++;
      void this.#fetch(key).finally(() => {
        this.#running--;
        this.#pump();
      });
    }
  }

  async #fetch(key: Key): Promise<void> {
    const { signal, observer } = this.#options;
    const backoff = new Backoff({ firstMs: 200, mostMs: 10_000 });
    for (;;) {
      const wanted = this.#wanted.get(key);
      if (wanted === undefined || signal.aborted) return;
      wanted.again = false;
      try {
        this.#take(key, wanted, await this.#get(key));
      } catch (error) {
        if (signal.aborted) return;
        const failure = ApiError.fromFailure(key, error);
        // Not being allowed to read it is an answer too: what refers to it says that it cannot be
        // used.
        if (failure.status === 403) this.#read(key);
        const wait = backoff.next(failure.status === 403 ? 30_000 : failure.retryAfterMs);
        observer?.log?.("warn", `cannot read ${key}: ${failure.message}`, { retryInMs: Math.round(wait) });
        if (!(await this.#rest(wait))) return;
        continue;
      }
      if (this.#wanted.get(key) !== wanted || !wanted.again) {
        wanted.fetching = false;
        return;
      }
    }
  }

  /** A waiting fetch gives its place to others. */
  async #rest(ms: number): Promise<boolean> {
    this.#running--;
    this.#pump();
    const awake = await pause(ms, this.#options.signal);
    this.#running++;
    return awake;
  }

  async #get(key: Key): Promise<ApiObject | undefined> {
    const { kind, namespace, name } = partsOf(key);
    const path = objectPath({ apiVersion: "v1", plural: PLURAL_OF_KIND[kind], namespace }, name);
    try {
      return await this.#options.client.request<ApiObject>({ path, signal: this.#options.signal });
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  #take(key: Key, wanted: Wanted, object: ApiObject | undefined): void {
    const { emit, shape, observer } = this.#options;
    if (this.#wanted.get(key) !== wanted) return;
    const version = object?.metadata.resourceVersion ?? "";
    if (wanted.version !== version) {
      const shaped = object === undefined ? undefined : shape(partsOf(key).kind, object);
      if (shaped !== undefined && "problem" in shaped) {
        observer?.log?.("warn", `${key} is left out: ${shaped.problem}`);
      }
      const resource = shaped !== undefined && "resource" in shaped ? shaped.resource : undefined;
      if (resource !== undefined || wanted.version) emit(key, resource);
      wanted.version = version;
    }
    this.#read(key);
  }

  #read(key: Key): void {
    if (this.#unread.delete(key)) this.#options.onRead(key);
  }
}
