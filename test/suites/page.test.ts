import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { KNOWN_DIFFERENCES } from "../../suites/known-differences.ts";
import { type Entry, page } from "../../suites/report.ts";
import { SUITES } from "../../suites/suites.ts";

const reference = new URL("../../docs/reference/", import.meta.url);
const entries = JSON.parse(readFileSync(new URL("suites.json", reference), "utf8")) as readonly Entry[];

test("docs/reference/suites.md says what suites.json says", () => {
  expect(readFileSync(new URL("suites.md", reference), "utf8")).toBe(page(entries, KNOWN_DIFFERENCES));
});

test("the page shows the versions that are run", () => {
  const shown = entries.map(({ suite, source }) => ({ name: suite, source }));
  const run = SUITES.map(({ name, source }) => ({ name, source }));
  expect(shown).toEqual(run.filter(({ name }) => entries.some(({ suite }) => suite === name)));
});

test("every known difference belongs to a suite and says why", () => {
  const names = SUITES.map(({ name }) => name);
  for (const { suite, reason } of KNOWN_DIFFERENCES) {
    expect(names).toContain(suite);
    expect(reason.length).toBeGreaterThan(20);
  }
});
