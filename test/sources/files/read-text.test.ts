import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { keyOf } from "../../../src/api/key.ts";
import type { DocumentError } from "../../../src/sources/files/yaml/document-error.ts";
import { readText } from "../../../src/sources/files/yaml/read-text.ts";

interface Case {
  readonly name: string;
  readonly text: string;
  readonly errors?: readonly string[];
  readonly objects?: readonly string[];
  /** Only the first error is compared: what the parser reports after a broken bracket may vary. */
  readonly anyErrors?: true;
}

const cases = parse(readFileSync(join(import.meta.dirname, "text-cases.yaml"), "utf8")) as readonly Case[];

function summary({ line, column, path, rule }: DocumentError): string {
  return [`${line}:${column}`, path, rule].filter((part) => part !== undefined).join(" ");
}

test.each(cases)("$name", ({ text, errors = [], objects = [], anyErrors }) => {
  const content = readText(text, "file.yaml");
  const found = content.errors.map(summary);
  if (anyErrors) expect(found).toEqual(expect.arrayContaining(errors.slice(0, 1)));
  else expect(found).toEqual(errors);
  expect(content.documents.map(({ line, resource }) => `${line} ${keyOf(resource)}`)).toEqual(objects);
  for (const error of content.errors) {
    expect(error.file).toBe("file.yaml");
    expect(error.message).not.toBe("");
    expect(error.remedy).not.toBe("");
  }
});

test("a field is located in its document, also in a List and after another document", () => {
  const text = `apiVersion: v1
kind: Namespace
metadata: {name: first}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec:
    ports:
    - port: 80
    - name: b
      port: 81
`;
  const service = readText(text.replace("- port: 80", "- {port: 80, name: a}"), "f.yaml").documents[1];
  expect(service?.locate(["spec", "ports", 1, "port"])).toEqual({ line: 15, column: 7 });
  expect(service?.locate(["spec", "ports", 0, "name"])).toEqual({ line: 13, column: 18 });
  expect(service?.locate(["spec", "ports", 1, "targetPort"])).toEqual({ line: 14, column: 7 });
  expect(service?.locate(["spec", "type"])).toEqual({ line: 11, column: 3 });
  expect(service?.locate([])).toEqual({ line: 8, column: 3 });
});

describe("a hostile file", () => {
  const levels = "abcdefghi".split("");
  const bomb = (leaf: string, level: (below: string) => string): string =>
    ["apiVersion: v1", "kind: ConfigMap", "metadata: {name: a}", `a: &a ${leaf}`]
      .concat(levels.slice(1).map((name, i) => `${name}: &${name} ${level(`*${levels[i]}`)}`))
      .join("\n");
  const ten = (alias: string): string => Array(10).fill(alias).join(", ");

  test.each([
    ["lists of aliases", bomb("[x, x]", (below) => `[${ten(below)}]`)],
    ["merges of aliases", bomb("{x: 1}", (below) => `{<<: [${ten(below)}]}`)],
    [
      "maps of aliases",
      bomb("{x: 1}", (below) => `{p: ${below}, q: ${below}, r: ${below}, s: ${below}, t: ${below}}`),
    ],
  ])("with an alias bomb of %s is refused, and the other document is read", (_, text) => {
    const { errors, documents } = readText(
      `${text}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n`,
      "f",
    );
    expect(errors.map(summary)).toEqual(["1:1 yaml/expansion"]);
    expect(documents).toHaveLength(1);
  });

  test("is not one that uses an anchor a hundred times", () => {
    const items = Array.from({ length: 100 }, (_, i) => `- {<<: *base, metadata: {name: c${i}}}`);
    const text = [
      "apiVersion: v1",
      "kind: List",
      "x: &base {apiVersion: v1, kind: ConfigMap}",
      "items:",
      ...items,
    ].join("\n");
    const { errors, documents } = readText(text, "f");
    expect(errors).toEqual([]);
    expect(documents).toHaveLength(100);
  });

  test.each(["[", "{a: ", "- ", "? ", "a: {b: ", "[]{", " "])(
    "with %j a hundred thousand times is read in time",
    (piece) => {
      const { errors, documents } = readText(
        `${piece.repeat(100_000)}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n`,
        "f",
      );
      expect(errors.length).toBeLessThanOrEqual(21);
      expect(documents).toHaveLength(1);
    },
  );

  test("with indentation a thousand levels deep is refused", () => {
    const text = Array.from({ length: 1000 }, (_, i) => `${" ".repeat(i)}a:`).join("\n");
    expect(readText(text, "f").errors.map(summary)).toEqual(["201:201 yaml/too-deep"]);
  });

  test("with twenty thousand keys in one object is read in time", () => {
    const data = Array.from({ length: 20_000 }, (_, i) => `  k${i}: v`).join("\n");
    const { errors, documents } = readText(
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n${data}\n`,
      "f",
    );
    expect(errors).toEqual([]);
    expect(documents).toHaveLength(1);
  });
});

test("names of the greatest length are admitted, longer ones refused", () => {
  const object = (name: string, namespace: string): string =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "${name}", namespace: "${namespace}"}\n`;
  const { documents, errors } = readText(
    [object("a".repeat(253), "b".repeat(63)), object("a".repeat(254), "b".repeat(64))].join("---\n"),
    "f",
  );
  expect(documents).toHaveLength(1);
  expect(errors.map(summary)).toEqual([
    "7:12 metadata.name metadata/name",
    "7:276 metadata.namespace metadata/namespace",
  ]);
});

test("no text makes reading throw", () => {
  const line = fc.constantFrom(
    ...[
      "apiVersion: v1",
      "kind: ConfigMap",
      "kind: List",
      "items:",
      "- a",
      "  - b: &x c",
      "metadata: {name: a}",
      "data:",
    ],
    ...[
      "  k: |",
      "    text",
      "  k: *x",
      "---",
      "...",
      "\t",
      "? a",
      ": b",
      "!!binary x",
      "&a",
      "*a",
      '"',
      "'",
      "[",
      "]",
      "{",
      "}",
    ],
    ...[
      "<<: *x",
      "- - -",
      "%TAG ! x",
      "a: b: c",
      "\u0000",
      "\ud800",
      "__proto__: {a: 1}",
      "# c",
      ">-",
      "k: 1_0",
      "\ufeff",
    ],
  );
  const text = fc
    .array(fc.oneof(line, fc.string({ maxLength: 10 })), { maxLength: 25 })
    .map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(text, (source) => {
      const { documents, errors } = readText(source, "f");
      const lines = source.split("\n").length;
      for (const { line: at, column } of [...documents, ...errors]) {
        expect(at).toBeGreaterThanOrEqual(1);
        expect(at).toBeLessThanOrEqual(lines + 1);
        expect(column).toBeGreaterThanOrEqual(1);
      }
      for (const document of documents) document.locate(["metadata", "name"]);
    }),
    { numRuns: 1000 },
  );
});
