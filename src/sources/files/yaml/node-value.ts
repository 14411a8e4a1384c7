import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Pair } from "yaml";
import type { FieldPath } from "../../../api/admission/schema/field-error.ts";

/**
 * A YAML tree as the JSON value that kubectl would send. Safe for hostile files: expansion of
 * anchors is capped, keys such as `__proto__` are plain keys, duplicate keys are reported.
 */
export interface NodeValue {
  readonly value: unknown;
  readonly problems: readonly ValueProblem[];
}

export interface ValueProblem {
  readonly offset: number;
  /** Path of the object it is in; empty when it is about the whole document. */
  readonly path: FieldPath;
  readonly rule: string;
  readonly message: string;
  readonly remedy: string;
}

/** Aliases may expand a document to this many times what is written, and always to FREE_VALUES. */
const MAX_EXPANSION = 100;
const FREE_VALUES = 1000;

export function jsonOf(document: Document): NodeValue {
  const reader = new Reader();
  const value = reader.read(document.contents as Node | null);
  const { written, total } = reader;
  if (total > FREE_VALUES && total > written * MAX_EXPANSION) {
    const message = `anchors and aliases make ${total} values of the ${written} that are written`;
    const remedy = "Write out what is needed, or split the document.";
    return {
      value: undefined,
      problems: [...reader.problems, { offset: 0, path: [], rule: "yaml/expansion", message, remedy }],
    };
  }
  return { value, problems: reader.problems };
}

interface Anchored {
  readonly value: unknown;
  readonly size: number;
}

class Reader {
  readonly problems: ValueProblem[] = [];
  /** Values written in the text. */
  written = 0;
  /** Values after expansion; may exceed safe integers when aliases nest. */
  total = 0;
  readonly #anchors = new Map<string, Anchored>();
  readonly #path: (string | number)[] = [];

  read(node: Node | null): unknown {
    const before = this.total;
    const value = this.#readBare(node);
    if (node !== null && !isAlias(node) && "anchor" in node && typeof node.anchor === "string") {
      this.#anchors.set(node.anchor, { value, size: this.total - before });
    }
    return value;
  }

  #readBare(node: Node | null): unknown {
    if (isAlias(node)) {
      const anchored = this.#anchors.get(node.source);
      if (anchored === undefined) {
        // The message does not name the alias: it may be a password that begins with an asterisk.
        const remedy =
          "Put an anchor of that name before what it should repeat; put a text that begins with * in quotes.";
        this.#report(node, "yaml/alias", "an alias that has no anchor before it", remedy);
        return null;
      }
      this.total += anchored.size;
      return anchored.value;
    }
    this.written++;
    this.total++;
    if (isMap(node)) return this.#readMap(node.items as readonly Pair<Node, Node | null>[]);
    if (isSeq(node)) return node.items.map((item, index) => this.#readAt(index, item as Node | null));
    return isScalar(node) ? node.value : null;
  }

  #readAt(segment: string | number, node: Node | null): unknown {
    this.#path.push(segment);
    const value = this.read(node);
    this.#path.pop();
    return value;
  }

  #readMap(items: readonly Pair<Node, Node | null>[]): unknown {
    const entries = new Map<string, unknown>();
    const merged: unknown[] = [];
    for (const { key, value } of items) {
      const name = this.#keyOf(key);
      if (name === undefined) continue;
      const field = this.#readAt(name, value);
      if (name === "<<" && isScalar(key) && key.type === "PLAIN") {
        merged.push(...(Array.isArray(field) ? field : [field]));
        continue;
      }
      if (entries.has(name)) {
        this.#report(
          key,
          "yaml/duplicate-key",
          `${JSON.stringify(name)} comes twice in one object`,
          "Remove one of them.",
        );
      }
      entries.set(name, field);
    }
    for (const source of merged) mergeInto(entries, source);
    return Object.fromEntries(entries);
  }

  #keyOf(key: Node | null): string | undefined {
    if (isScalar(key)) return key.value === null ? "null" : String(key.value);
    if (key !== null)
      this.#report(key, "yaml/key", "a key that is no plain text", "Use a plain text as key.");
    return undefined;
  }

  #report(node: Node, rule: string, message: string, remedy: string): void {
    this.problems.push({ offset: node.range?.[0] ?? 0, path: [...this.#path], rule, message, remedy });
  }
}

/** Own keys win over merged keys, earlier sources over later ones. */
function mergeInto(entries: Map<string, unknown>, source: unknown): void {
  if (typeof source !== "object" || source === null || Array.isArray(source)) return;
  for (const [name, field] of Object.entries(source)) if (!entries.has(name)) entries.set(name, field);
}
