import { type FSWatcher, watch } from "node:fs";

export interface Following {
  /** A folder is watched now that was not before: it may have changed unseen. */
  readonly hasNew: boolean;
  /** False when a folder could not be watched: then one has to look from time to time. */
  readonly isComplete: boolean;
}

/**
 * Says when something happened in some folders. One watch per folder rather than a recursive one:
 * those do not follow links, and it is links that Kubernetes swaps when a ConfigMap volume changes.
 */
export class DirectoryWatch {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #onEvent: () => void;

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent;
  }

  /** Watches these folders and no others. */
  follow(directories: readonly string[]): Following {
    const wanted = new Set(directories);
    for (const [directory, watcher] of this.#watchers) {
      if (!wanted.has(directory)) this.#drop(directory, watcher);
    }
    const before = this.#watchers.size;
    for (const directory of wanted) if (!this.#watchers.has(directory)) this.#add(directory);
    return { hasNew: this.#watchers.size > before, isComplete: this.#watchers.size === wanted.size };
  }

  close(): void {
    for (const [directory, watcher] of this.#watchers) this.#drop(directory, watcher);
  }

  #add(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: true }, this.#onEvent);
      // The folder went, or the system has no more watches: look again, and try anew at the next
      // occasion.
      watcher.on("error", () => {
        this.#drop(directory, watcher);
        this.#onEvent();
      });
      this.#watchers.set(directory, watcher);
    } catch {
      // Such as EMFILE or ENOSPC: the caller falls back to looking regularly.
    }
  }

  #drop(directory: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
  }
}
