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

interface CachedFile {
  readonly signature: string;
  readonly content: FileContent;
}

/** The content of the files under some paths; a refresh reads only files that changed. */
export class FolderState {
  readonly #paths: readonly string[];
  readonly #options: AdmissionOptions;
  #files: ReadonlyMap<string, CachedFile> = new Map();
  #resources: ReadonlyMap<Key, Resource> = new Map();

  constructor(paths: readonly string[], options: AdmissionOptions) {
    this.#paths = paths;
    this.#options = options;
  }

  async refresh(signal: AbortSignal): Promise<Settled> {
    const { files, directories, errors } = await listFiles(this.#paths);
    const cached = new Map<string, CachedFile>();
    for (const listed of files) {
      signal.throwIfAborted();
      cached.set(listed.file, await this.#readIfChanged(listed, signal));
    }
    this.#files = cached;
    const collection = collect([...cached.values()].map(({ content }) => content));
    return {
      changes: this.#advance(collection.resources),
      resources: collection.resources,
      errors: [...errors, ...collection.errors],
      warnings: collection.warnings,
      directories,
    };
  }

  async #readIfChanged(listed: ListedFile, signal: AbortSignal): Promise<CachedFile> {
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

/** A replaced file has another inode; a changed file has another time or size. */
function signatureOf({ ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}
