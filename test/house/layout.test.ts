/**
 * The layout of src: ARCHITECTURE.md says which folder may import which; this test compares. The
 * layout of test follows it.
 */
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { backticked, filesOf, namesDeclaredTwice, ROOT, tableBelow, textOf } from "./sources.ts";

interface Room {
  readonly folder: string;
  /** Folders with everything below them, files, and `x/*` for the files of `x` alone. */
  readonly mayImport: readonly string[];
  /** Knows no clock, no I/O and no logger. */
  readonly isPure: boolean;
}

interface Import {
  readonly from: string;
  readonly to: string;
}

/** Folders below `test` that are not named after one of `src`, with all that is below them. */
const TEST_FOLDERS: readonly string[] = [
  // Tests of what stands beside `src`.
  "bench",
  "chart",
  "e2e",
  "house",
  "simulation",
  "suites",
  "tools",
  // What tests are made of.
  "api/admission-cases",
  "cli/status/expected",
  "engine/cases",
  "engine/certificates",
  "sources/files/examples",
  "support",
  "dataplanes/support",
  "dataplanes/tunnel/support",
  // Tests of all data planes, and long ones in parts.
  "dataplanes/churn",
  "dataplanes/contract",
  "dataplanes/differential",
  "dataplanes/embedded/hostile",
  "dataplanes/envoy/faults",
  "dataplanes/envoy/values",
  "dataplanes/tenants",
];
const LARGEST_FOLDER = 16;
const LONGEST_FILE = 400;

const FILES = filesOf(["src"], ".ts");
const ROOMS = tableBelow(textOf("ARCHITECTURE.md"), "## The folders").flatMap(([paths = "", , may = ""]) =>
  backticked(paths)
    .filter((path) => path.startsWith("src/"))
    .map(
      (folder): Room => ({
        folder,
        mayImport: backticked(may).map((path) => `src/${path}`),
        isPure: may.includes("pure"),
      }),
    ),
);

const IMPORTS = FILES.flatMap((from): readonly Import[] =>
  Array.from(textOf(from).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g), ([, specifier = ""]) => ({
    from,
    to: normalize(join(dirname(from), specifier)),
  })),
);

/** The room that describes a file most closely. */
function roomOf(file: string): Room | undefined {
  return ROOMS.filter(({ folder }) => isIn(file, folder)).sort(
    (a, b) => b.folder.length - a.folder.length,
  )[0];
}

function isIn(file: string, folder: string): boolean {
  if (folder.endsWith("/*")) return dirname(file) === dirname(folder);
  return file === folder || file.startsWith(`${folder}/`);
}

function isAllowed({ from, to }: Import): boolean {
  const room = roomOf(from);
  if (room === undefined) return false;
  return roomOf(to) === room || room.mayImport.some((folder) => isIn(to, folder));
}

describe("the folders of test", () => {
  const folders = new Set(filesOf(["test"], "").map((file) => dirname(file).slice("test/".length)));

  test("a folder of tests is named after the folder of src that it tests", () => {
    const isMirror = (folder: string): boolean => existsSync(join(ROOT, "src", folder));
    const isListed = (folder: string): boolean => TEST_FOLDERS.some((listed) => isIn(folder, listed));
    expect([...folders].filter((folder) => !isMirror(folder) && !isListed(folder))).toEqual([]);
  });

  test("every exception is a folder that src does not have", () => {
    const wrong = TEST_FOLDERS.filter(
      (folder) => existsSync(join(ROOT, "src", folder)) || !existsSync(join(ROOT, "test", folder)),
    );
    expect(wrong).toEqual([]);
  });
});

describe("the folders of src", () => {
  test("every file is in a folder that ARCHITECTURE.md describes", () => {
    expect(FILES.filter((file) => roomOf(file) === undefined)).toEqual([]);
  });

  test("a folder imports only what ARCHITECTURE.md allows it", () => {
    const forbidden = IMPORTS.filter((each) => !isAllowed(each));
    expect(forbidden.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  test("ARCHITECTURE.md allows nothing that is not used", () => {
    const unused = ROOMS.flatMap((room) =>
      room.mayImport
        .filter((may) => !IMPORTS.some(({ from, to }) => roomOf(from) === room && isIn(to, may)))
        .map((may) => `${room.folder} does not import ${may}`),
    );
    expect(unused).toEqual([]);
  });

  test("pure folders import nothing of Node", () => {
    const impure = FILES.filter((file) => roomOf(file)?.isPure && /from "node:/.test(textOf(file)));
    expect(impure).toEqual([]);
    expect(ROOMS.filter(({ isPure }) => isPure).length).toBeGreaterThan(3);
  });

  test("no folders import each other in a circle", () => {
    expect(circles()).toEqual([]);
  });

  test("an exported name is declared in one file only, so one name means one thing", () => {
    const twice = namesDeclaredTwice(FILES.map((file) => [file, textOf(file)]));
    expect(Array.from(twice, ([name, files]) => `${name}: ${files.join(", ")}`)).toEqual([]);
  });

  test(`no folder has more than ${LARGEST_FOLDER} files, and no file more than ${LONGEST_FILE} lines`, () => {
    const sizes = Map.groupBy(FILES, dirname);
    expect([...sizes].filter(([, files]) => files.length > LARGEST_FOLDER).map(([folder]) => folder)).toEqual(
      [],
    );
    expect(FILES.filter((file) => textOf(file).split("\n").length > LONGEST_FILE)).toEqual([]);
  });
});

/** Folders that can reach themselves through the imports of others. */
function circles(): readonly string[] {
  const edges = Map.groupBy(
    IMPORTS.map(({ from, to }) => [dirname(from), dirname(to)] as const).filter(([from, to]) => from !== to),
    ([from]) => from,
  );
  const reachable = (start: string): ReadonlySet<string> => {
    const seen = new Set<string>();
    const open = [start];
    for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
      for (const [, next] of edges.get(folder) ?? []) {
        if (seen.has(next)) continue;
        seen.add(next);
        open.push(next);
      }
    }
    return seen;
  };
  return [...edges.keys()].filter((folder) => reachable(folder).has(folder));
}
