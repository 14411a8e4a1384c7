import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

/** Generated, copied from elsewhere, or history. */
const LEFT_OUT: readonly string[] = [
  "src/api/schemas",
  "src/dataplanes/envoy/wire/proto.ts",
  "docs/reference/suites.md",
  "CHANGELOG.md",
];

/** Files below these folders whose names end so; paths from the project's root. */
export function filesOf(folders: readonly string[], ...endings: readonly string[]): readonly string[] {
  return folders
    .flatMap((folder) => below(join(ROOT, folder)))
    .map((file) => relative(ROOT, file))
    .filter((file) => endings.some((ending) => file.endsWith(ending)))
    .filter((file) => !LEFT_OUT.some((left) => file === left || file.startsWith(`${left}/`)));
}

export function textOf(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

function below(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => below(join(path, name)));
}

/** Exported names that more than one file declares, with the files. */
export function namesDeclaredTwice(
  texts: Iterable<readonly [file: string, text: string]>,
): ReadonlyMap<string, readonly string[]> {
  const declared =
    /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) (\w+)/gm;
  const declarations = Array.from(texts).flatMap(([file, text]) =>
    Array.from(new Set(text.matchAll(declared).map(([, name = ""]) => name)), (name) => ({ name, file })),
  );
  const byName = Map.groupBy(declarations, ({ name }) => name);
  return new Map(
    Array.from(byName, ([name, all]) => [name, all.map(({ file }) => file)] as const).filter(
      ([, files]) => files.length > 1,
    ),
  );
}

/** The rows of a Markdown table below a heading, each as its cells. */
export function tableBelow(markdown: string, heading: string): readonly (readonly string[])[] {
  const [, after = ""] = markdown.split(`\n${heading}\n`);
  const [section = ""] = after.split("\n## ");
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) =>
    row
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

export function backticked(cell: string): readonly string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, word]) => word ?? "");
}
