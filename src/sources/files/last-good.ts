import { keyOf } from "../../api/key.ts";
import type { DocumentError } from "./yaml/document-error.ts";
import type { FileContent, LocatedResource } from "./yaml/read-text.ts";

/**
 * Keeps serving after a mistake in a file. An object keeps its last good version while its new
 * version is refused, or while the file cannot be read as a whole. It goes when the file goes.
 */
export function keepLastGood(previous: FileContent | undefined, next: FileContent): FileContent {
  if (previous === undefined || (next.complete && next.refused.length === 0)) return next;
  const present = new Set(next.documents.map(({ resource }) => keyOf(resource)));
  const refused = new Set(next.refused);
  const kept = previous.documents.filter(({ resource }) => {
    const key = keyOf(resource);
    return !present.has(key) && (!next.complete || refused.has(key));
  });
  if (kept.length === 0) return next;
  return {
    ...next,
    documents: [...next.documents, ...kept],
    errors: [...next.errors, notice(next.file, kept)],
  };
}

const MAX_NAMED = 5;

function notice(file: string, kept: readonly LocatedResource[]): DocumentError {
  const names = kept.slice(0, MAX_NAMED).map(({ resource: { kind, metadata } }) => {
    return `${kind} ${metadata.namespace === undefined ? "" : `${metadata.namespace}/`}${metadata.name}`;
  });
  const more = kept.length > MAX_NAMED ? ` and ${kept.length - MAX_NAMED} more` : "";
  return {
    file,
    line: 1,
    column: 1,
    rule: "file/last-good",
    message: `the last good version stays in force of ${names.join(", ")}${more}`,
    remedy:
      "Correct the other errors of this file; to remove an object, remove it from a file without errors.",
  };
}
