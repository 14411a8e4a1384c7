import { type FSWatcher, watch } from "node:fs";

export interface WatchCoverage {
  /** A folder is watched that was not before: changes between listing and watching were missed. */
  readonly hasNew: boolean;
  /** False when a folder could not be watched: the caller must poll. */
  readonly isComplete: boolean;
}

/**
 * Watches folders, one watch for each. A recursive watch does not follow links, and Kubernetes
 * swaps links when a ConfigMap volume changes.
 */
export class DirectoryWatch {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #onEvent: () => void;

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent;
  }

  /** Watches these folders and no others. */
  follow(directories: readonly string[]): WatchCoverage {
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
      // The folder was removed, or the system has no more watches: the next refresh tries again.
      watcher.on("error", () => {
        this.#drop(directory, watcher);
        this.#onEvent();
      });
      this.#watchers.set(directory, watcher);
    } catch {
      // Such as EMFILE or ENOSPC: the caller falls back to polling.
    }
  }

  #drop(directory: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
  }
}
