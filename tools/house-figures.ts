// The figures of docs/decisions/0024-house.md, of this working copy or of another:
//
//   node tools/house-figures.ts [FOLDER]
//
// What must be zero is held there by test/house; this only counts, so that states can be compared.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { backticked, namesDeclaredTwice, tableBelow, textOf } from "../test/house/sources.ts";

const GENERATED = ["src/api/schemas", "src/dataplanes/envoy/wire/proto.ts"];
const root = process.argv[2] ?? ".";
const CODE = ["src", "test", "tools", "bench", "suites"].flatMap((folder) => below(folder, ".ts"));
const SOURCE = CODE.filter((file) => file.startsWith("src/"));
const PROSE = ["docs", "examples", "bench", "charts", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
  .flatMap((folder) => below(folder, ".md"))
  .filter((file) => !/suites\.md$|glossary\.md$/.test(file));
const lines = new Map(
  [...CODE, ...PROSE].map((file) => [file, readFileSync(join(root, file), "utf8").split("\n")]),
);

function below(path: string, ending: string): readonly string[] {
  const stats = statSync(join(root, path), { throwIfNoEntry: false });
  if (stats === undefined || path.includes("node_modules") || GENERATED.includes(path)) return [];
  if (stats.isDirectory())
    return readdirSync(join(root, path)).flatMap((name) => below(join(path, name), ending));
  return path.endsWith(ending) ? [path] : [];
}

function count(files: readonly string[], isCounted: (line: string) => boolean): number {
  return files.flatMap((file) => lines.get(file) ?? []).filter(isCounted).length;
}

function withoutCode(all: readonly string[]): readonly string[] {
  let isCode = false;
  return all.filter((line) => {
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode;
    return !isCode;
  });
}

/** Sizes of the groups of folders that can all reach each other by imports. */
function circles(): readonly number[] {
  const edges = new Map(SOURCE.map((file) => [dirname(file), new Set<string>()]));
  for (const file of SOURCE) {
    for (const [, to = ""] of (lines.get(file) ?? [])
      .join("\n")
      .matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g))
      edges.get(dirname(file))?.add(dirname(normalize(join(dirname(file), to))));
  }
  const reach = (folder: string, seen: Set<string> = new Set()): ReadonlySet<string> => {
    for (const next of edges.get(folder) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      reach(next, seen);
    }
    return seen;
  };
  const reached = new Map(Array.from(edges.keys(), (folder) => [folder, reach(folder)]));
  const groups = Map.groupBy(reached.keys(), (folder) =>
    [...reached.keys()]
      .filter((other) => reached.get(folder)?.has(other) && reached.get(other)?.has(folder))
      .join(),
  );
  return [...groups].flatMap(([group, { length }]) => (group !== "" && length > 1 ? [length] : []));
}

/** Functions and methods, found by the indentation that the formatter gives them. */
function longFunctions(limit: number): number {
  const begins =
    /^( *)(?:(?:export|async|static|protected|private|override|get|set) )*(?:function\*? ?\w+|constructor|[#\w]+)(?:<.*>)?\(/;
  const isStatement = /^ *(?:if|for|while|switch|return|await|void|super|throw|else|catch)\b/;
  return SOURCE.map((file) => lines.get(file) ?? []).flatMap((all) =>
    all.filter((line, index) => {
      const indent = begins.exec(line)?.[1];
      if (indent === undefined || isStatement.test(line)) return false;
      const atIndent = (each: string): boolean =>
        each.startsWith(indent) && !each.startsWith(`${indent} `) && each !== "";
      // A signature ends with a brace that opens the body; what stands in between is indented.
      let opened = index;
      while (opened >= index && !(all[opened] ?? "").endsWith(" {")) {
        const next = all.findIndex((each, at) => at > opened && atIndent(each));
        if (!/[({]$/.test(all[opened] ?? "") || !/^ *[)}]/.test(all[next] ?? "")) return false;
        opened = next;
      }
      const end = all.findIndex((each, at) => at > opened && each.startsWith(`${indent}}`));
      return all[end] === `${indent}}` && end - index + 1 > limit;
    }),
  ).length;
}

const retired = tableBelow(textOf("docs/glossary.md"), "## Retired words").flatMap(([words = ""]) =>
  backticked(words),
);
/** As test/house/words.test.ts has it: in a sentence or in an identifier. */
const patterns = retired.map((word) => {
  const [first = "", ...rest] = word.replaceAll(" ", "[ -]?");
  const either = `(?:(?<![A-Za-z])${first.toLowerCase()}|${first.toUpperCase()})`;
  return new RegExp(`${either}${rest.join("")}(?:s|es)?(?![a-z])`);
});
/** A writer or reader of a field that is called with a number. */
const FIELD_NUMBER =
  /\b(?:text|texts|uint|flag|double|nested|nestedEach|map|explicit\w+|duration|\w+Value|headerOptions|messages?)\(\s*\d+\b/g;
const isComment = /^\s*(?:\/\/|\/?\*)/;
const isKept = /biome-ignore|https?:\/\/\S{60}/;
const isFree = /^\s*(?:\||#|<|```|\[[^\]]+\]:|!\[| {4})/;

const figures: Readonly<Record<string, number | string>> = {
  "lines with retired words": patterns
    .map((pattern) => count([...CODE, ...PROSE], (line) => pattern.test(line)))
    .reduce((sum, each) => sum + each),
  "strongly connected components of folders": circles().join(", ") || 0,
  "largest folder, in files": Math.max(
    ...Map.groupBy(SOURCE, dirname)
      .values()
      .map(({ length }) => length),
  ),
  "exported names declared twice": namesDeclaredTwice(
    SOURCE.map((file) => [file, (lines.get(file) ?? []).join("\n")]),
  ).size,
  "bare field numbers in messages of Envoy": SOURCE.filter((file) =>
    file.startsWith("src/dataplanes/envoy/"),
  ).flatMap((file) => (lines.get(file) ?? []).join("\n").match(FIELD_NUMBER) ?? []).length,
  "files over 350 lines": SOURCE.filter((file) => (lines.get(file)?.length ?? 0) > 351).length,
  "functions over 60 lines": longFunctions(60),
  "comment lines over 100 columns": count(
    CODE,
    (line) => line.length > 100 && isComment.test(line) && !isKept.test(line),
  ),
  "prose lines over 100 columns": PROSE.flatMap((file) => withoutCode(lines.get(file) ?? [])).filter(
    (line) => line.length > 100 && /\S\s+\S/.test(line) && !isFree.test(line),
  ).length,
  "private citations": count([...CODE, ...PROSE], (line) => /\bseeds? 00\d|\bissue \d+\b/i.test(line)),
};
for (const [name, figure] of Object.entries(figures)) console.log(`${name}: ${figure}`);
