import type { AdmissionOptions } from "../../api/admission/admit.ts";
import { type CollectedFiles, collect } from "./collect.ts";
import { type ListedFile, listFiles, STDIN } from "./list-files.ts";
import { MAX_FILE_BYTES, readFileText, tooLarge } from "./read-file.ts";
import { type FileContent, readText } from "./yaml/read-text.ts";

export interface LoadOptions extends AdmissionOptions {
  readonly signal?: AbortSignal;
}

export interface Loaded extends CollectedFiles {
  /** The files that were read: standard input first, then sorted. */
  readonly files: readonly string[];
}

/** Reads files, folders and `-` (standard input) once. An unreadable file affects no other file. */
export async function loadPaths(paths: readonly string[], options: LoadOptions = {}): Promise<Loaded> {
  const { files, errors } = await listFiles(paths);
  const contents: FileContent[] = [];
  if (paths.includes(STDIN)) contents.push(await readNamed(STDIN, options));
  for (const listed of files) contents.push(await readListed(listed, options));
  const collection = collect(contents);
  return {
    ...collection,
    errors: [...errors, ...collection.errors],
    files: contents.map(({ file }) => file),
  };
}

export async function readListed({ file, stats }: ListedFile, options: LoadOptions): Promise<FileContent> {
  if (stats.size > MAX_FILE_BYTES) return unreadable(file, [tooLarge(file, stats.size)]);
  return await readNamed(file, options);
}

async function readNamed(file: string, { signal, ...admission }: LoadOptions): Promise<FileContent> {
  const { text, error } = await readFileText(file, signal);
  return text === undefined ? unreadable(file, [error]) : readText(text, file, admission);
}

function unreadable(file: string, errors: FileContent["errors"]): FileContent {
  return { file, documents: [], errors, warnings: [], complete: false, refused: [] };
}
