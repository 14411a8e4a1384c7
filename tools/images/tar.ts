// A tar writer for image layers: the same entries always give the same bytes (sorted, no times, no
// owners' names).

import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

export type Entry =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  /** `source` is a file of this machine, or the content itself. */
  | {
      readonly kind: "file";
      readonly path: string;
      readonly mode: number;
      readonly source: string | Uint8Array;
    };

const block = 512;
const typeFlags = { file: "0", link: "2", directory: "5" } as const;

/**
 * Paths begin with `/`, the root of the archive. Missing parent folders are added. A path given
 * twice is a bug.
 */
export function* tar(entries: readonly Entry[]): Generator<Uint8Array> {
  for (const entry of withParents(entries)) {
    const content = entry.kind === "file" ? contentOf(entry.source) : new Uint8Array();
    const name = entry.path.replace(/^\/+/, "") + (entry.kind === "directory" ? "/" : "");
    const target = entry.kind === "link" ? entry.target : "";
    const long = extendedHeader(name, target);
    if (long !== undefined) {
      yield header({ name: "PaxHeader", target: "", mode: 0o644, size: long.length, type: "x" });
      yield* padded(long);
    }
    const mode = entry.kind === "link" ? 0o777 : entry.mode;
    yield header({ name, target, mode, size: content.length, type: typeFlags[entry.kind] });
    yield* padded(content);
  }
  yield new Uint8Array(2 * block);
}

/**
 * All files below a folder of this machine, as entries below `to`. Only the executable bit of a
 * mode survives.
 */
export function entriesBelow(folder: string, to: string): readonly Entry[] {
  return readdirSync(folder)
    .sort()
    .flatMap((name) => entryOf(join(folder, name), join(to, name)));
}

export function entryOf(source: string, path: string): readonly Entry[] {
  const stat = lstatSync(source);
  if (stat.isSymbolicLink()) {
    return [{ kind: "link", path, target: readlinkSync(source) }];
  }
  if (stat.isDirectory()) {
    return [{ kind: "directory", path, mode: 0o755 }, ...entriesBelow(source, path)];
  }
  if (!stat.isFile()) {
    return [];
  }
  return [{ kind: "file", path, mode: (stat.mode & 0o100) === 0 ? 0o644 : 0o755, source }];
}

function withParents(entries: readonly Entry[]): readonly Entry[] {
  const all = new Map<string, Entry>();
  for (const entry of entries) {
    if (all.has(entry.path)) {
      throw new Error(`${entry.path} is in the archive twice`);
    }
    all.set(entry.path, entry);
  }
  for (const { path } of entries) {
    const parts = path.split("/").filter((part) => part !== "");
    for (let depth = 1; depth < parts.length; depth += 1) {
      const parent = `/${parts.slice(0, depth).join("/")}`;
      if (!all.has(parent)) {
        all.set(parent, { kind: "directory", path: parent, mode: 0o755 });
      }
    }
  }
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function contentOf(source: string | Uint8Array): Uint8Array {
  return typeof source === "string" ? readFileSync(source) : source;
}

function* padded(content: Uint8Array): Generator<Uint8Array> {
  yield content;
  const rest = content.length % block;
  if (rest > 0) {
    yield new Uint8Array(block - rest);
  }
}

interface Header {
  readonly name: string;
  readonly target: string;
  readonly mode: number;
  readonly size: number;
  readonly type: string;
}

function header(fields: Header): Uint8Array {
  const bytes = Buffer.alloc(block);
  const octal = (value: number, at: number, length: number): void => {
    bytes.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  };
  bytes.write(cut(fields.name), 0, "utf8");
  octal(fields.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(fields.size, 124, 12);
  octal(0, 136, 12);
  bytes.write("        ", 148, "latin1");
  bytes.write(fields.type, 156, "latin1");
  bytes.write(cut(fields.target), 157, "utf8");
  bytes.write("ustar\0" + "00", 257, "latin1");
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

/** What a plain header has room for. If that is not all, an extended header before it has all. */
function cut(text: string): string {
  return fits(text)
    ? text
    : Buffer.from(text)
        .subarray(0, 99)
        .toString("latin1")
        .replace(/[^ -~]/g, "_");
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= 100;
}

function extendedHeader(name: string, target: string): Uint8Array | undefined {
  const records = [
    ...(fits(name) ? [] : [record("path", name)]),
    ...(fits(target) ? [] : [record("linkpath", target)]),
  ];
  return records.length === 0 ? undefined : Buffer.from(records.join(""));
}

/** A record begins with its own length, which counts its own digits. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const size = Buffer.byteLength(rest);
  let length = size + 1;
  while (String(length).length + size !== length) {
    length = String(length).length + size;
  }
  return `${length}${rest}`;
}
