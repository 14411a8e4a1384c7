import type { Stats } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { pathError } from "./path-error.ts";
import type { DocumentError } from "./yaml/document-error.ts";

/** A file to read; its stats tell whether it has changed. */
export interface ListedFile {
  readonly file: string;
  readonly stats: Stats;
}

export interface FileList {
  /** Sorted; a file that several paths lead to is there once. */
  readonly files: readonly ListedFile[];
  readonly directories: readonly string[];
  readonly errors: readonly DocumentError[];
}

export const STDIN = "-";

const MAX_DIRECTORY_DEPTH = 64;

/**
 * The given files, and all YAML and JSON files below the given folders. Hidden entries and
 * node_modules are skipped.
 */
export async function listFiles(paths: readonly string[]): Promise<FileList> {
  const walk = new Walk();
  for (const path of paths) if (path !== STDIN) await walk.enter(path, true, []);
  const sorted = [...walk.files].sort(([a], [b]) => (a < b ? -1 : 1));
  const seen = new Set<string>();
  const files: ListedFile[] = [];
  for (const [file, { real, stats }] of sorted) {
    if (seen.has(real)) continue;
    seen.add(real);
    files.push({ file, stats });
  }
  return { files, directories: [...walk.directories].sort(), errors: walk.errors };
}

class Walk {
  readonly files = new Map<string, { readonly real: string; readonly stats: Stats }>();
  readonly directories = new Set<string>();
  readonly errors: DocumentError[] = [];

  /** `above`: real paths of the folders above; a link back to one of them would be a loop. */
  async enter(path: string, given: boolean, above: readonly string[]): Promise<void> {
    try {
      const stats = await stat(path);
      const real = await realpath(path);
      if (stats.isDirectory()) {
        if (above.includes(real) || above.length >= MAX_DIRECTORY_DEPTH) return;
        this.directories.add(path);
        for (const name of (await readdir(path)).sort()) {
          if (isCandidate(name)) await this.enter(join(path, name), false, [...above, real]);
        }
      } else if (given || (stats.isFile() && /\.(?:ya?ml|json)$/i.test(path))) {
        this.files.set(path, { real, stats });
      }
    } catch (error) {
      // An entry may be removed after its folder was listed: only a missing given path is an error.
      if (given || !isGone(error)) this.errors.push(pathError(path, error));
    }
  }
}

function isCandidate(name: string): boolean {
  return !name.startsWith(".") && name !== "node_modules";
}

function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
