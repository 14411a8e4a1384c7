import { type AdmissionOptions, admit } from "../../../api/admission/admit.ts";
import { type FieldError, type FieldPath, formatPath } from "../../../api/admission/schema/field-error.ts";
import { type Key, keyFor } from "../../../api/key.ts";
import type { Kind, Resource } from "../../../api/resource.ts";
import type { DocumentError, Position } from "./document-error.ts";
import { type Chunk, splitDocuments } from "./split-documents.ts";
import { readDocument, type YamlDocument } from "./yaml-document.ts";

/** The content of one file. A bad document does not affect the others. */
export interface FileContent {
  readonly file: string;
  readonly documents: readonly LocatedResource[];
  readonly errors: readonly DocumentError[];
  readonly warnings: readonly DocumentError[];
  /** False when a part of the text could not be parsed: objects may be missing. */
  readonly complete: boolean;
  /** Objects that are in the text but were refused. */
  readonly refused: readonly Key[];
}

export interface LocatedResource extends Position {
  readonly resource: Resource;
  readonly file: string;
  /** Where a field is; for a field that is not written, its nearest written parent. */
  locate(path: FieldPath): Position;
}

const DEFAULT_NAMESPACE = "default";

export function readText(text: string, file: string, options: AdmissionOptions = {}): FileContent {
  const reader = new TextReader(file, { defaultNamespace: DEFAULT_NAMESPACE, ...options });
  for (const chunk of splitDocuments(text.startsWith("\ufeff") ? text.slice(1) : text)) reader.read(chunk);
  return reader.content();
}

interface DocumentPlace extends Position {
  readonly resource: Resource;
  readonly file: string;
  readonly chunk: Chunk;
  /** Path of the object in its document: empty unless it is an item of a List. */
  readonly prefix: FieldPath;
}

/** Keeps the text of its document instead of the tree: trees are large, and rarely needed. */
class PlacedResource implements LocatedResource {
  readonly resource: Resource;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly #chunk: Chunk;
  readonly #prefix: FieldPath;

  constructor({ resource, file, line, column, chunk, prefix }: DocumentPlace) {
    this.resource = resource;
    this.file = file;
    this.line = line;
    this.column = column;
    this.#chunk = chunk;
    this.#prefix = prefix;
  }

  locate(path: FieldPath): Position {
    return parsed(this.#chunk).locate([...this.#prefix, ...path]);
  }
}

/** Lookups in one document come in a row, so the latest tree is kept while memory allows. */
let latest: { readonly chunk: Chunk; readonly document: WeakRef<YamlDocument> } | undefined;

function parsed(chunk: Chunk): YamlDocument {
  const known = latest?.chunk === chunk ? latest.document.deref() : undefined;
  if (known !== undefined) return known;
  const document = readDocument(chunk);
  latest = { chunk, document: new WeakRef(document) };
  return document;
}

/** A List may contain Lists; deeper nesting than this is a mistake. */
const MAX_LIST_DEPTH = 4;

class TextReader {
  readonly #file: string;
  readonly #options: AdmissionOptions;
  readonly #documents: LocatedResource[] = [];
  readonly #errors: DocumentError[] = [];
  readonly #warnings: DocumentError[] = [];
  readonly #refused: Key[] = [];
  #complete = true;

  constructor(file: string, options: AdmissionOptions) {
    this.#file = file;
    this.#options = options;
  }

  content(): FileContent {
    return {
      file: this.#file,
      documents: this.#documents,
      errors: this.#errors,
      warnings: this.#warnings,
      complete: this.#complete,
      refused: this.#refused,
    };
  }

  read(chunk: Chunk): void {
    const document = readDocument(chunk);
    for (const { path, ...problem } of document.problems) {
      const shown = path.length > 0 ? { path: formatPath(path) } : {};
      this.#errors.push({ file: this.#file, ...problem, ...shown });
    }
    if (!document.readable) this.#complete = false;
    else if (document.value !== null) this.#readObject(document.value, { chunk, document, path: [] });
  }

  #readObject(value: unknown, at: Place): void {
    if (isList(value)) {
      this.#readList(value.items, at);
      return;
    }
    const { resource, errors, warnings } = admit(value, this.#options);
    const name = nameOf(value);
    for (const error of errors) this.#errors.push(this.#placed(error, name, at));
    for (const warning of warnings) this.#warnings.push(this.#placed(warning, name, at));
    // An object with a duplicate key is refused even if the rest of it is valid.
    const hasProblem = at.document.problems.some(({ path }) => startsWith(path, at.path));
    if (errors.length > 0 || (resource !== undefined && hasProblem)) this.#refuse(value);
    else if (resource !== undefined) {
      const { line, column } = at.document.locate(at.path);
      const place = { resource, file: this.#file, line, column, chunk: at.chunk, prefix: at.path };
      this.#documents.push(new PlacedResource(place));
    }
  }

  #readList(items: unknown, at: Place): void {
    if (!Array.isArray(items) || at.path.length / 2 >= MAX_LIST_DEPTH) {
      const message = "a List whose items cannot be read";
      const error = {
        path: ["items"],
        rule: "schema/type",
        message,
        remedy: "Give items a list of objects.",
      };
      this.#errors.push(this.#placed(error, undefined, at));
      return;
    }
    for (const [index, item] of items.entries()) {
      this.#readObject(item, { ...at, path: [...at.path, "items", index] });
    }
  }

  #refuse(value: unknown): void {
    const { kind, namespace, name } = identityOf(value);
    if (kind !== undefined && name !== undefined) {
      this.#refused.push(
        keyFor(kind as Kind, namespace ?? DEFAULT_NAMESPACE, name),
        keyFor(kind as Kind, "", name),
      );
    }
  }

  #placed(error: FieldError, object: string | undefined, at: Place): DocumentError {
    const path = [...at.path, ...error.path];
    return {
      file: this.#file,
      ...at.document.locate(path),
      ...(path.length > 0 && { path: formatPath(path) }),
      ...(object !== undefined && { object }),
      rule: error.rule,
      message: error.message,
      remedy: error.remedy,
    };
  }
}

interface Place {
  readonly chunk: Chunk;
  readonly document: YamlDocument;
  readonly path: FieldPath;
}

function isList(value: unknown): value is { readonly items: unknown } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { apiVersion, kind } = value as Readonly<Record<string, unknown>>;
  return apiVersion === "v1" && kind === "List";
}

function startsWith(path: FieldPath, prefix: FieldPath): boolean {
  return prefix.every((segment, index) => path[index] === segment);
}

interface ObjectIdentity {
  readonly kind: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

/** What is known of an object that may be invalid in any way. */
function identityOf(value: unknown): ObjectIdentity {
  const object = fieldsOf(value);
  const metadata = fieldsOf(object["metadata"]);
  const short = (text: unknown): string | undefined =>
    typeof text === "string" && text !== "" && text.length <= 253 ? text : undefined;
  return {
    kind: short(object["kind"]),
    namespace: short(metadata["namespace"]),
    name: short(metadata["name"]),
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function nameOf(value: unknown): string | undefined {
  const { kind, namespace, name } = identityOf(value);
  if (kind === undefined || name === undefined) return undefined;
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}
