import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { ResourceChange } from "../source.ts";

export interface BatchOptions {
  /** `since` is when the first of the changes came, as `performance.now()` counts. */
  readonly sink: (changes: readonly ResourceChange[], since: number) => void;
  /** Changes that arrive within this time of the first go together. */
  readonly gatherMs: number;
  /** Objects that some change refers to and that are still being read for the first time. */
  readonly missing: () => Iterable<Key>;
  /** A batch waits no longer than this for missing objects. */
  readonly waitMs: number;
}

/** Changes that are complete but for the objects they refer to. */
interface Waiting {
  readonly changes: Changes;
  readonly missing: Set<Key>;
  readonly timer: NodeJS.Timeout;
}

interface Changes {
  readonly since: number;
  readonly newest: Map<Key, Resource | undefined>;
}

/**
 * Gathers changes and passes them on: nothing before `open`, then the newest version of each
 * object, shortly after it came.
 *
 * - A batch is closed when its gathering time ends. It waits for the objects that are missing then,
 *   and for no later ones: a steady flow of new references delays nobody.
 * - Batches keep their order. An object that one waits for goes with it; whatever else comes
 *   meanwhile is in the next one.
 * - An object that does not come within `waitMs` is not waited for again until it has come: one
 *   Secret that cannot be read delays others once.
 */
export class Batch {
  readonly #options: BatchOptions;
  #gathered: Changes | undefined;
  #gathering: NodeJS.Timeout | undefined;
  #waiting: Waiting | undefined;
  readonly #overdue = new Set<Key>();
  #isOpen = false;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  add(key: Key, resource: Resource | undefined): void {
    const waiting = this.#waiting;
    if (waiting?.missing.has(key)) {
      waiting.changes.newest.set(key, resource);
      return;
    }
    this.#gathered ??= { since: performance.now(), newest: new Map() };
    this.#gathered.newest.set(key, resource);
    if (this.#isOpen && waiting === undefined) this.#gather();
  }

  /** Passes on everything so far, even nothing, and from now on as it comes. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    const changes = this.#gathered ?? { since: performance.now(), newest: new Map() };
    this.#gathered = undefined;
    this.#send(changes);
  }

  /** A missing object has been read, or nothing refers to it any more. */
  arrived(key: Key): void {
    this.#overdue.delete(key);
    const waiting = this.#waiting;
    if (waiting?.missing.delete(key) && waiting.missing.size === 0) this.#release(waiting);
  }

  close(): void {
    clearTimeout(this.#gathering);
    clearTimeout(this.#waiting?.timer);
    this.#gathering = undefined;
    this.#waiting = undefined;
    this.#gathered = undefined;
    this.#isOpen = false;
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => this.#close(), this.#options.gatherMs);
  }

  #close(): void {
    this.#gathering = undefined;
    const changes = this.#gathered;
    this.#gathered = undefined;
    if (changes === undefined) return;
    const missing = new Set<Key>();
    for (const key of this.#options.missing()) if (!this.#overdue.has(key)) missing.add(key);
    if (missing.size === 0) this.#send(changes);
    else this.#waiting = { changes, missing, timer: this.#limit() };
  }

  #limit(): NodeJS.Timeout {
    return setTimeout(() => {
      const waiting = this.#waiting;
      if (waiting === undefined) return;
      for (const key of waiting.missing) this.#overdue.add(key);
      this.#release(waiting);
    }, this.#options.waitMs);
  }

  #release({ changes, timer }: Waiting): void {
    clearTimeout(timer);
    this.#waiting = undefined;
    this.#send(changes);
    if (this.#gathered !== undefined) this.#gather();
  }

  #send({ newest, since }: Changes): void {
    const changes = Array.from(newest, ([key, resource]) => ({ key, resource }));
    this.#options.sink(changes, since);
  }
}
