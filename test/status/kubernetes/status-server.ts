import { type Key, partsOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { ApiError } from "../../../src/kubernetes/api-error.ts";
import { objectPath } from "../../../src/kubernetes/api-object.ts";
import type { ApiRequest } from "../../../src/kubernetes/client.ts";
import { PLURAL_OF_KIND } from "../../../src/kubernetes/kinds.ts";
import type { StatusClient } from "../../../src/status/kubernetes/status-requests.ts";
import type { ManualClock } from "../../kubernetes/manual-clock.ts";

const API_VERSION = "gateway.networking.k8s.io/v1";

type Status = Readonly<Record<string, unknown>>;

interface Stored {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly generation: number;
    readonly resourceVersion: string;
  };
  readonly status: Status;
}

export interface Write {
  readonly at: number;
  readonly key: Key;
  readonly fields: Status;
  readonly before: Status;
}

/** `refused`: an answer with this status, nothing done. `lost`: done, and no answer. */
export type Fault = { readonly refused: number } | { readonly lost: true };

export type Watcher = (
  changes: readonly { readonly key: Key; readonly resource: Resource | undefined }[],
) => void;

/**
 * An API server in memory: versions, conflicts, the status subresource and a watch, by a clock that
 * tests hold.
 */
export class StatusServer implements StatusClient {
  readonly writes: Write[] = [];
  readonly reads: Key[] = [];
  readonly watchers: Set<Watcher> = new Set();
  /** What goes wrong with a request, if anything. */
  fault: (method: string, key: Key) => Fault | undefined = () => undefined;
  /** Fields of a status that the installed CRD does not know. */
  unknownFields: readonly string[] = [];
  /** On each way, of a request and its answer. */
  latencyMs = 2;
  answerMs: number | undefined;
  watchMs = 3;
  readonly #clock: ManualClock;
  readonly #objects = new Map<Key, Stored>();
  readonly #keys = new Map<string, Key>();
  #version = 100;
  #uids = 0;
  #watchedUntil = 0;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  get(key: Key): Stored | undefined {
    return this.#objects.get(key);
  }

  keys(): Iterable<Key> {
    return this.#objects.keys();
  }

  statusOf(key: Key): Status {
    return this.#objects.get(key)?.status ?? {};
  }

  writesOf(key: Key): readonly Write[] {
    return this.writes.filter((write) => write.key === key);
  }

  create(key: Key, status: Status = {}): void {
    const { namespace, name } = partsOf(key);
    const uid = `uid-${++this.#uids}`;
    this.#store(key, { metadata: { namespace, name, uid, generation: 1, resourceVersion: "" }, status });
  }

  /** Somebody edits the spec. */
  edit(key: Key): void {
    const stored = this.#objects.get(key);
    if (stored === undefined) return;
    this.#store(key, {
      ...stored,
      metadata: { ...stored.metadata, generation: stored.metadata.generation + 1 },
    });
  }

  /** Somebody else writes the status. */
  overwrite(key: Key, status: Status): void {
    const stored = this.#objects.get(key);
    if (stored !== undefined) this.#store(key, { ...stored, status: { ...stored.status, ...status } });
  }

  remove(key: Key): void {
    this.#objects.delete(key);
    this.#version++;
    this.#notify(key, undefined);
  }

  /** The database goes back to an earlier state of the object, and so do its versions. */
  restore(key: Key, earlier: Stored): void {
    this.#version = Number(earlier.metadata.resourceVersion) - 1;
    this.#store(key, earlier);
  }

  async request<T>({ method = "GET", path, body, signal }: ApiRequest): Promise<T> {
    const key = this.#keys.get(path.replace(/\/status$/, "")) ?? "";
    await this.#pass(this.latencyMs);
    signal?.throwIfAborted();
    const fault = this.fault(method, key);
    if (fault !== undefined && "refused" in fault) throw refusal(fault.refused);
    const stored = method === "PATCH" ? this.#patch(key, body as Patch) : this.#read(key);
    await this.#pass(this.answerMs ?? this.latencyMs);
    signal?.throwIfAborted();
    if (fault !== undefined) throw new Error("the connection broke");
    return structuredClone(stored) as T;
  }

  #read(key: Key): Stored {
    this.reads.push(key);
    const stored = this.#objects.get(key);
    if (stored === undefined) throw refusal(404);
    return stored;
  }

  #patch(key: Key, { metadata, status }: Patch): Stored {
    const stored = this.#objects.get(key);
    if (stored === undefined) throw refusal(404);
    if (metadata.resourceVersion !== stored.metadata.resourceVersion) throw refusal(409);
    this.writes.push({ at: this.#clock.now(), key, fields: status, before: stored.status });
    const known = Object.entries({ ...stored.status, ...status }).filter(
      ([field, value]) => value !== null && !this.unknownFields.includes(field),
    );
    return this.#store(key, { ...stored, status: structuredClone(Object.fromEntries(known)) });
  }

  #store(key: Key, { metadata, status }: Stored): Stored {
    const { kind, namespace, name } = partsOf(key);
    const plural = PLURAL_OF_KIND[kind];
    this.#keys.set(objectPath({ apiVersion: API_VERSION, plural, namespace }, name), key);
    const stored = { metadata: { ...metadata, resourceVersion: String(++this.#version) }, status };
    this.#objects.set(key, stored);
    this.#notify(key, stored);
    return stored;
  }

  /** Events arrive in order, whatever each of them takes. */
  #notify(key: Key, stored: Stored | undefined): void {
    this.#watchedUntil = Math.max(this.#watchedUntil, this.#clock.now() + this.watchMs);
    const resource =
      stored === undefined
        ? undefined
        : ({
            apiVersion: API_VERSION,
            kind: partsOf(key).kind,
            ...structuredClone(stored),
          } as unknown as Resource);
    this.#clock.after(this.#watchedUntil - this.#clock.now(), () => {
      for (const watcher of this.watchers) watcher([{ key, resource }]);
    });
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(ms, resolve));
  }
}

interface Patch {
  readonly metadata: { readonly resourceVersion: string };
  readonly status: Status;
}

function refusal(status: number): ApiError {
  return new ApiError({ status, code: String(status), message: `refused with ${status}` });
}
