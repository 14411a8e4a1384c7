import { dirname } from "node:path";
import type { AdmissionOptions } from "../../api/admission/admit.ts";
import type { ResourceChange, Source } from "../source.ts";
import { DirectoryWatch } from "./directory-watch.ts";
import { FolderState, type Settled } from "./folder-state.ts";
import { STDIN } from "./list-files.ts";
import { Waker } from "./waker.ts";

export interface FileSourceOptions extends AdmissionOptions {
  /** How long it must be quiet before files are read; default 100 ms. */
  readonly debounceMs?: number;
  /** How often to look without being told, for file systems that tell nothing; default 10 s. */
  readonly pollMs?: number;
  /** Told everything that is known after each look that found something new. */
  readonly onSettled?: (settled: Settled) => void;
}

const UNWATCHED_POLL_MS = 1000;

/**
 * Files and folders as a source: what they hold now, and every change to it. Standard input cannot
 * be watched.
 */
export class FileSource implements Source {
  readonly #paths: readonly string[];
  readonly #options: FileSourceOptions;

  constructor(paths: readonly string[], options: FileSourceOptions = {}) {
    this.#paths = paths.filter((path) => path !== STDIN);
    this.#options = options;
  }

  async run(sink: (changes: readonly ResourceChange[]) => void, signal: AbortSignal): Promise<void> {
    const { debounceMs = 100, pollMs = 10_000, onSettled, ...admission } = this.#options;
    const state = new FolderState(this.#paths, admission);
    const waker = new Waker(debounceMs, signal);
    const watch = new DirectoryWatch(() => waker.wake());
    try {
      for (let told: string | undefined; !signal.aborted; ) {
        const settled = await state.refresh(signal);
        const { hasNew, isComplete } = watch.follow(this.#watched(settled.directories));
        const findings = JSON.stringify([settled.errors, settled.warnings]);
        if (told === undefined || settled.changes.length > 0) sink(settled.changes);
        if (told !== findings || settled.changes.length > 0) onSettled?.(settled);
        told = findings;
        // What happened in a folder between listing it and watching it was seen by neither.
        if (!hasNew) await waker.wait(isComplete ? pollMs : Math.min(pollMs, UNWATCHED_POLL_MS));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      watch.close();
    }
  }

  /**
   * The folders themselves; for files, and for paths that do not exist yet, the folder that holds
   * them.
   */
  #watched(directories: readonly string[]): readonly string[] {
    const holders = this.#paths.filter((path) => !directories.includes(path)).map((path) => dirname(path));
    return [...new Set([...directories, ...holders])];
  }
}
