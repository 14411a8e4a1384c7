import type { Stats } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { AdmissionOptions } from "../../api/admission/admit.ts";
import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { ResourceChange } from "../source.ts";
import { collect } from "./collect.ts";
import { keepLastGood } from "./last-good.ts";
import { type ListedFile, listFiles } from "./list-files.ts";
import { readListed } from "./load-paths.ts";
import type { DocumentError } from "./yaml/document-error.ts";
import type { FileContent, LocatedResource } from "./yaml/read-text.ts";

export interface Settled {
  readonly changes: readonly ResourceChange[];
  readonly resources: ReadonlyMap<Key, LocatedResource>;
  readonly errors: readonly DocumentError[];
  readonly warnings: readonly DocumentError[];
  readonly directories: readonly string[];
}

interface Remembered {
  readonly signature: string;
  readonly content: FileContent;
}

/**
 * What the files under some paths say, brought up to date on demand; only files that changed are
 * read again.
 */
export class FolderState {
  readonly #paths: readonly string[];
  readonly #options: AdmissionOptions;
  #files: ReadonlyMap<string, Remembered> = new Map();
  #resources: ReadonlyMap<Key, Resource> = new Map();

  constructor(paths: readonly string[], options: AdmissionOptions) {
    this.#paths = paths;
    this.#options = options;
  }

  async refresh(signal: AbortSignal): Promise<Settled> {
    const { files, directories, errors } = await listFiles(this.#paths);
    const remembered = new Map<string, Remembered>();
    for (const listed of files) {
      signal.throwIfAborted();
      remembered.set(listed.file, await this.#remember(listed, signal));
    }
    this.#files = remembered;
    const collection = collect([...remembered.values()].map(({ content }) => content));
    return {
      changes: this.#advance(collection.resources),
      resources: collection.resources,
      errors: [...errors, ...collection.errors],
      warnings: collection.warnings,
      directories,
    };
  }

  async #remember(listed: ListedFile, signal: AbortSignal): Promise<Remembered> {
    const before = this.#files.get(listed.file);
    const signature = signatureOf(listed.stats);
    if (before?.signature === signature) return before;
    const content = await readListed(listed, { ...this.#options, signal });
    return { signature, content: keepLastGood(before?.content, content) };
  }

  #advance(next: ReadonlyMap<Key, LocatedResource>): readonly ResourceChange[] {
    const changes: ResourceChange[] = [];
    const resources = new Map<Key, Resource>();
    for (const [key, { resource }] of next) {
      const before = this.#resources.get(key);
      const isSame = before !== undefined && (before === resource || isDeepStrictEqual(before, resource));
      resources.set(key, isSame ? before : resource);
      if (!isSame) changes.push({ key, resource });
    }
    for (const key of this.#resources.keys()) if (!next.has(key)) changes.push({ key, resource: undefined });
    this.#resources = resources;
    return changes;
  }
}

/** A replaced file has another inode, a changed one another time or size. */
function signatureOf({ ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}
