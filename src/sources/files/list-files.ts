import type { Stats } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { pathError } from "./path-error.ts";
import type { DocumentError } from "./yaml/document-error.ts";

/** A file to read, and what tells whether it has changed. */
export interface ListedFile {
  readonly file: string;
  readonly stats: Stats;
}

export interface FileList {
  /** In sorted order, each file once whatever names lead to it. */
  readonly files: readonly ListedFile[];
  readonly directories: readonly string[];
  readonly errors: readonly DocumentError[];
}

export const STDIN = "-";

const MAX_DIRECTORY_DEPTH = 64;

/**
 * Files as they are, folders with everything YAML or JSON below them. Hidden folders and
 * node_modules are skipped.
 */
export async function listFiles(paths: readonly string[]): Promise<FileList> {
  const walk = new Walk();
  for (const path of paths) if (path !== STDIN) await walk.visit(path, true, []);
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

  /**
   * `above` holds the real paths of the folders on the way: a link back to one of them is a loop.
   */
  async visit(path: string, given: boolean, above: readonly string[]): Promise<void> {
    try {
      const stats = await stat(path);
      const real = await realpath(path);
      if (stats.isDirectory()) {
        if (above.includes(real) || above.length >= MAX_DIRECTORY_DEPTH) return;
        this.directories.add(path);
        for (const name of (await readdir(path)).sort()) {
          if (isCandidate(name)) await this.visit(join(path, name), false, [...above, real]);
        }
      } else if (given || (stats.isFile() && /\.(?:ya?ml|json)$/i.test(path))) {
        this.files.set(path, { real, stats });
      }
    } catch (error) {
      // Between listing a folder and looking at an entry the entry may go: only a path that was
      // asked for is missed.
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
