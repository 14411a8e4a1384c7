import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type ScalarTag,
} from "yaml";
import type { FieldPath } from "../../../api/admission/schema/field-error.ts";
import type { Position } from "./document-error.ts";
import { tooDeepAt } from "./nesting.ts";
import { jsonOf, type ValueProblem } from "./node-value.ts";
import type { Chunk } from "./split-documents.ts";

interface YamlProblem extends Position {
  readonly path: FieldPath;
  readonly rule: string;
  readonly message: string;
  readonly remedy: string;
}

export interface YamlDocument {
  readonly value: unknown;
  readonly problems: readonly YamlProblem[];
  /** False when the text is not YAML: there is no value then. */
  readonly readable: boolean;
  /** Where a field is; for a field that is missing, its nearest parent. */
  readonly locate: (path: FieldPath) => Position;
}

const MAX_PROBLEMS = 20;

export function readDocument(chunk: Chunk): YamlDocument {
  const lines = new LineCounter();
  const place = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    // The counter answers 0 before the parser has seen a line.
    return { line: chunk.line + Math.max(line, 1) - 1, column: Math.max(col, 1) };
  };
  const refuse = (problem: ValueProblem): YamlDocument => {
    countLines(chunk.text, lines);
    return unreadable([problem], place);
  };
  const deep = tooDeepAt(chunk.text);
  if (deep !== undefined) return refuse({ offset: deep, path: [], ...TOO_DEEP });
  const control = CONTROL_CHARACTER.exec(chunk.text);
  if (control !== null) return refuse({ offset: control.index, path: [], ...CONTROL });
  const document = parse(chunk.text, lines);
  if (document.errors.length > 0) {
    const problems = document.errors.slice(0, MAX_PROBLEMS).map(({ code, message, pos }) => ({
      offset: pos[0],
      path: [],
      rule: `yaml/${code.toLowerCase().replaceAll("_", "-")}`,
      message: withoutSource(message.charAt(0).toLowerCase() + message.slice(1)),
      remedy: SYNTAX_REMEDIES[code] ?? "Correct the YAML here.",
    }));
    return unreadable(problems, place);
  }
  const { value, problems } = jsonOf(document);
  const placed = problems.map(({ offset, ...problem }) => ({ ...problem, ...place(offset) }));
  const locate = (path: FieldPath): Position => place(offsetOf(document, path));
  return { value, problems: placed, readable: value !== undefined, locate };
}

const QUOTES_SOURCE =
  /^(not a YAML token|block scalar header includes extra characters|unexpected \S+ token in YAML (?:stream|document)|unresolved tag|invalid escape sequence)\b.*$/s;

/** Removes text that the parser quotes: it may be of a Secret. The position is enough. */
function withoutSource(message: string): string {
  return message.replace(QUOTES_SOURCE, "$1");
}

function unreadable(problems: readonly ValueProblem[], place: (offset: number) => Position): YamlDocument {
  return {
    value: undefined,
    problems: problems.map(({ offset, ...problem }) => ({ ...problem, ...place(offset) })),
    readable: false,
    locate: () => place(0),
  };
}

/** Plain scalars as kubectl reads them, with YAML 1.1: `on` is true and 0777 is octal. */
const BOOLEAN_1_1: ScalarTag = {
  tag: "tag:yaml.org,2002:bool",
  default: true,
  test: /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/,
  resolve: (text) => /^[yYtT]|^[oO][nN]$/.test(text),
};

const INTEGER_1_1: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^[-+]?(?:0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*)$/,
  resolve: (text) => integerOf(text),
};

function integerOf(text: string): number {
  const negative = text.startsWith("-");
  const digits = text.replace(/^[-+]/, "").replaceAll("_", "");
  const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits;
  return (negative ? -1 : 1) * Number(octal);
}

function parse(text: string, lineCounter: LineCounter): Document {
  return parseDocument(text, {
    lineCounter,
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: "silent",
    customTags: (tags) => [BOOLEAN_1_1, INTEGER_1_1, ...tags],
  });
}

function countLines(text: string, lines: LineCounter): void {
  lines.addNewLine(0);
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines.addNewLine(at + 1);
}

/** The offset of a field's key, or of a list entry's beginning. */
function offsetOf(document: Document, path: FieldPath): number {
  let node: unknown = document.contents;
  let offset = (document.contents as Node | null)?.range?.[0] ?? 0;
  for (const segment of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(segment));
      if (pair === undefined) return offset;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof segment === "number") {
      node = node.items[segment];
      if (node === undefined) return offset;
      offset = (node as Node).range?.[0] ?? offset;
    } else return offset;
  }
  return offset;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that YAML and Kubernetes refuse
const CONTROL_CHARACTER = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

const CONTROL = {
  rule: "yaml/control-character",
  message: "a control character, which YAML does not allow",
  remedy: "Remove it; the file may be damaged or no text at all.",
};

const TOO_DEEP = {
  rule: "yaml/too-deep",
  message: "nested more deeply than any Kubernetes object",
  remedy: "Check for brackets that are not closed, or flatten the document.",
};

const SYNTAX_REMEDIES: Readonly<Partial<Record<string, string>>> = {
  TAB_AS_INDENT: "Indent with spaces.",
  MISSING_CHAR: "Close the quote or bracket; the file may be cut off.",
  BAD_INDENT: "Indent the line further, or close the bracket before it; the file may be cut off.",
  BLOCK_AS_IMPLICIT_KEY: "Put the inner object on lines of its own, or quote the text that has ': ' in it.",
  MULTILINE_IMPLICIT_KEY: "Put ': ' after the key, on the same line.",
  UNEXPECTED_TOKEN: "Check the indentation of this line and the one before it.",
  BAD_SCALAR_START: "Put the text in quotes.",
  BAD_DQ_ESCAPE: "Write \\\\ for a backslash inside double quotes.",
};
