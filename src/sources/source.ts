import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";

/** An object was added or changed (`resource`), or removed (`undefined`). */
export interface ResourceChange {
  readonly key: Key;
  readonly resource: Resource | undefined;
}

/** Where resources come from. */
export interface Source {
  /**
   * Delivers changes until the signal is aborted, then resolves. The first call of `sink` has
   * everything that exists and is made even if nothing does. Each later call has changes that
   * belong together.
   */
  run(sink: (changes: readonly ResourceChange[]) => void, signal: AbortSignal): Promise<void>;
}
