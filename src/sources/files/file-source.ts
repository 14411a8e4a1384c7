import { dirname } from "node:path";
import type { AdmissionOptions } from "../../api/admission/admit.ts";
import type { ResourceChange, Source } from "../source.ts";
import { Debouncer } from "./debouncer.ts";
import { DirectoryWatch } from "./directory-watch.ts";
import { FolderState, type Settled } from "./folder-state.ts";
import { STDIN } from "./list-files.ts";

export interface FileSourceOptions extends AdmissionOptions {
  /** Files are read after this long without an event; default 100 ms. */
  readonly debounceMs?: number;
  /** Interval of polling, for file systems without events; default 10 s. */
  readonly pollMs?: number;
  /** Called with the whole state after each refresh that found something new. */
  readonly onSettled?: (settled: Settled) => void;
}

const UNWATCHED_POLL_MS = 1000;

/** Files and folders as a source. Standard input is left out: it cannot be watched. */
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
    const debouncer = new Debouncer(debounceMs, signal);
    const watch = new DirectoryWatch(() => debouncer.notify());
    try {
      for (let reported: string | undefined; !signal.aborted; ) {
        const settled = await state.refresh(signal);
        const { hasNew, isComplete } = watch.follow(this.#watched(settled.directories));
        const findings = JSON.stringify([settled.errors, settled.warnings]);
        if (reported === undefined || settled.changes.length > 0) sink(settled.changes);
        if (reported !== findings || settled.changes.length > 0) onSettled?.(settled);
        reported = findings;
        // Changes between listing a folder and watching it are seen by neither: refresh once more.
        if (!hasNew) await debouncer.wait(isComplete ? pollMs : Math.min(pollMs, UNWATCHED_POLL_MS));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      watch.close();
    }
  }

  /** The folders, and the parent folders of files and of paths that do not exist yet. */
  #watched(directories: readonly string[]): readonly string[] {
    const parents = this.#paths.filter((path) => !directories.includes(path)).map((path) => dirname(path));
    return [...new Set([...directories, ...parents])];
  }
}
