import { readFile } from "node:fs/promises";
import { STDIN } from "./list-files.ts";
import { pathError } from "./path-error.ts";
import type { DocumentError } from "./yaml/document-error.ts";

/** Enough for 40,000 routes in one file; for more the parser would need gigabytes. */
export const MAX_FILE_BYTES: number = 32 * 1024 * 1024;

export type TextOrError =
  | { readonly text: string; readonly error?: never }
  | { readonly text?: never; readonly error: DocumentError };

/** The text of a file, or why it cannot be read. */
export async function readFileText(file: string, signal?: AbortSignal): Promise<TextOrError> {
  try {
    const bytes = file === STDIN ? await readStdin() : await readFile(file, { ...(signal && { signal }) });
    return decode(bytes, file);
  } catch (error) {
    if (signal?.aborted === true) throw error;
    return { error: pathError(file, error) };
  }
}

export function decode(bytes: Uint8Array, file: string): TextOrError {
  if (bytes.length > MAX_FILE_BYTES) return { error: tooLarge(file, bytes.length) };
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    const { line, column } = firstBadByte(bytes);
    const remedy = "Save the file as UTF-8; it may be of another encoding or damaged.";
    return { error: { file, line, column, rule: "file/not-utf8", message: "the text is not UTF-8", remedy } };
  }
}

export function tooLarge(file: string, bytes: number): DocumentError {
  const message = `${bytes} bytes are more than the ${MAX_FILE_BYTES} that one file may have`;
  return {
    file,
    line: 1,
    column: 1,
    rule: "file/too-large",
    message,
    remedy: "Split it into several files.",
  };
}

function firstBadByte(bytes: Uint8Array): { readonly line: number; readonly column: number } {
  const lenient = new TextDecoder("utf-8").decode(bytes);
  const bad = lenient.indexOf("\ufffd");
  const before = lenient.slice(0, Math.max(bad, 0));
  const lastBreak = before.lastIndexOf("\n");
  return { line: before.split("\n").length, column: before.length - lastBreak };
}

async function readStdin(): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of process.stdin) {
    const chunk = typeof part === "string" ? Buffer.from(part) : (part as Uint8Array);
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_FILE_BYTES) break;
  }
  return Buffer.concat(parts);
}
