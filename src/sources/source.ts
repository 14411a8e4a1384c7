import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";

/** One object came, changed (its new version) or went (`undefined`). */
export interface ResourceChange {
  readonly key: Key;
  readonly resource: Resource | undefined;
}

/** Where resources come from. */
export interface Source {
  /**
   * Delivers changes until the signal is aborted, then resolves. The first call of `sink` brings
   * everything that exists, and happens even when nothing does; each later one brings what belongs
   * together.
   */
  run(sink: (changes: readonly ResourceChange[]) => void, signal: AbortSignal): Promise<void>;
}
