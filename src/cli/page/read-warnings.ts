import type { DocumentError } from "../../sources/files/yaml/document-error.ts";
import type { ReadingScope } from "../../view/written/reading-scope.ts";
import type { ClusterFlags } from "../workspace/cluster-flags.ts";
import { asWarning, scopeOf } from "../workspace/read-cluster.ts";

/**
 * What may not be read. A source keeps what it has read of a kind whose right is then taken away,
 * so that has to end the look.
 */
export class ReadWarnings {
  readonly #flags: ClusterFlags;
  readonly #server: URL;
  readonly #onLost: () => void;
  readonly #found: Map<string, DocumentError> = new Map();
  #scope: ReadingScope | undefined;
  #lost: string | undefined;

  constructor(flags: ClusterFlags, server: URL, onLost: () => void) {
    this.#flags = flags;
    this.#server = server;
    this.#onLost = onLost;
  }

  /** A resource that could be read at the start. */
  get lost(): string | undefined {
    return this.#lost;
  }

  take(message: string): void {
    const warning = asWarning(message, this.#server);
    if (warning === undefined) return;
    this.#found.set(warning.message, warning);
    const known = this.#scope;
    if (known === undefined || this.#lost !== undefined) return;
    this.#lost = scopeOf(this.#flags, [warning]).unread.find((resource) => !known.unread.includes(resource));
    if (this.#lost !== undefined) this.#onLost();
  }

  /** The first look is complete: what may not be read now is known. */
  settle(): ReadingScope {
    this.#scope ??= scopeOf(this.#flags, [...this.#found.values()]);
    return this.#scope;
  }
}
