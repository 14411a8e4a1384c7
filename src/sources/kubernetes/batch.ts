import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { ResourceChange } from "../source.ts";

export interface BatchOptions {
  /** `since` is when the first of the changes came, as `performance.now()` counts. */
  readonly sink: (changes: readonly ResourceChange[], since: number) => void;
  /** Changes that arrive within this time of the first go together. */
  readonly gatherMs: number;
  /** While this is true a batch waits for what belongs to it, but no longer than `holdMs`. */
  readonly isIncomplete: () => boolean;
  readonly holdMs: number;
}

/**
 * Gathers changes and hands them on: nothing before `open`, then the newest version of each object,
 * shortly after it came.
 */
export class Batch {
  readonly #options: BatchOptions;
  #changes = new Map<Key, Resource | undefined>();
  #isOpen = false;
  #timer: NodeJS.Timeout | undefined;
  #since = 0;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  add(key: Key, resource: Resource | undefined): void {
    if (this.#changes.size === 0) this.#since = performance.now();
    this.#changes.set(key, resource);
    if (this.#isOpen) this.#schedule();
  }

  /** Hands on everything so far, even nothing, and from now on as it comes. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#send();
  }

  /** Something that a batch may have waited for has happened. */
  poke(): void {
    if (this.#isOpen && this.#changes.size > 0 && performance.now() - this.#since >= this.#options.gatherMs) {
      this.#flush();
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isOpen = false;
    this.#changes.clear();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#flush(), this.#options.gatherMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#changes.size === 0) return;
    const left = this.#since + this.#options.holdMs - performance.now();
    if (left > 0 && this.#options.isIncomplete()) {
      this.#timer = setTimeout(() => this.#flush(), left);
      return;
    }
    this.#send();
  }

  #send(): void {
    const changes = [...this.#changes].map(([key, resource]) => ({ key, resource }));
    this.#changes = new Map();
    this.#options.sink(changes, changes.length === 0 ? performance.now() : this.#since);
  }
}
