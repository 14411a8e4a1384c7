import { type Key, keyOf } from "../../api/key.ts";
import type { DocumentError } from "./yaml/document-error.ts";
import type { FileContent, LocatedResource } from "./yaml/read-text.ts";

/** The content of all files together. */
export interface CollectedFiles {
  readonly resources: ReadonlyMap<Key, LocatedResource>;
  readonly errors: readonly DocumentError[];
  readonly warnings: readonly DocumentError[];
}

/** Of an object that is there twice, the first in the order of files counts; others are errors. */
export function collect(contents: Iterable<FileContent>): CollectedFiles {
  const resources = new Map<Key, LocatedResource>();
  const errors: DocumentError[] = [];
  const warnings: DocumentError[] = [];
  for (const content of contents) {
    errors.push(...content.errors);
    warnings.push(...content.warnings);
    for (const document of content.documents) {
      const key = keyOf(document.resource);
      const first = resources.get(key);
      if (first === undefined) resources.set(key, document);
      else errors.push(duplicate(document, first));
    }
  }
  return { resources, errors, warnings };
}

function duplicate({ resource, file, line, column }: LocatedResource, first: LocatedResource): DocumentError {
  const { namespace, name } = resource.metadata;
  const object = `${resource.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
  const place = `${first.file}:${first.line}`;
  return {
    file,
    line,
    column,
    object,
    rule: "duplicate-object",
    message: `${object} is already in ${place}, which counts; this one does not`,
    remedy: `Remove it here or in ${place}, or give one of them another name.`,
  };
}
