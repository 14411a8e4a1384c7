/** The language of the project: docs/glossary.md, and what every text keeps to. */
import { describe, expect, test } from "vitest";
import { backticked, filesOf, tableBelow, textOf } from "./sources.ts";

const CODE = filesOf(["src", "test", "tools", "bench", "suites"], ".ts");
const PROSE = filesOf(
  ["docs", "examples", "bench", "charts", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"],
  ".md",
);
const GLOSSARY = "docs/glossary.md";
const RETIRED = tableBelow(textOf(GLOSSARY), "## Retired words").flatMap(([words = ""]) => backticked(words));
const WIDTH = 100;
/** Names that others have given: a header of Cloudflare. */
const FOREIGN_NAMES = /cf-visitor/gi;

/** A word in a sentence or in an identifier, in the singular or the plural. */
function wordOf(word: string): RegExp {
  const [first = "", ...rest] = word.replaceAll(" ", "[ -]?");
  const either = `(?:(?<![A-Za-z])${first.toLowerCase()}|${first.toUpperCase()})`;
  return new RegExp(`${either}${rest.join("")}(?:s|es)?(?![a-z])`);
}

function linesWith(files: readonly string[], isBad: (line: string) => boolean): readonly string[] {
  return files.flatMap((file) =>
    textOf(file)
      .split("\n")
      .flatMap((line, index) => (isBad(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );
}

describe("the project's language", () => {
  test("the glossary lists words that are retired", () => {
    expect(RETIRED.length).toBeGreaterThan(10);
  });

  test.each(RETIRED)("nothing uses the retired word %s", (word) => {
    const pattern = wordOf(word);
    const files = [...CODE, ...PROSE].filter((file) => file !== GLOSSARY);
    expect(linesWith(files, (line) => pattern.test(line.replaceAll(FOREIGN_NAMES, "")))).toEqual([]);
  });

  test("rules cite documents that everybody can open", () => {
    const isPrivate = (line: string): boolean => /\bseeds? 00\d|\bissue \d+\b/i.test(line);
    const cases = filesOf(["test", "examples"], ".yaml");
    const files = [...CODE, ...PROSE, ...cases].filter((file) => file !== "test/house/words.test.ts");
    expect(linesWith(files, isPrivate)).toEqual([]);
  });

  test("comments are at most 100 columns wide", () => {
    const isComment = (line: string): boolean => /^\s*(\/\/|\/?\*)/.test(line);
    const isKept = (line: string): boolean => /biome-ignore|https?:\/\/\S{60}/.test(line);
    const isWide = (line: string): boolean => line.length > WIDTH && isComment(line) && !isKept(line);
    expect(linesWith(CODE, isWide)).toEqual([]);
  });

  test("prose is at most 100 columns wide, tables and code excepted", () => {
    const wide = PROSE.flatMap((file) => {
      let isCode = false;
      return textOf(file)
        .split("\n")
        .flatMap((line, index) => {
          if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
          const isFree = isCode || /^\s*(\||#|<|\[[^\]]+\]:|!\[| {4})/.test(line) || !/\S\s+\S/.test(line);
          return line.length > WIDTH && !isFree ? [`${file}:${index + 1}: ${line.slice(0, 60)}…`] : [];
        });
    });
    expect(wide).toEqual([]);
  });
});
