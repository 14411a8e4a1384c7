import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { KNOWN_DIFFERENCES } from "../../suites/known-differences.ts";
import { type Entry, page } from "../../suites/report.ts";
import { SUITES } from "../../suites/suites.ts";

const reference = new URL("../../docs/reference/", import.meta.url);
const entries = JSON.parse(readFileSync(new URL("suites.json", reference), "utf8")) as readonly Entry[];

test("docs/reference/suites.md says what suites.json says", () => {
  expect(readFileSync(new URL("suites.md", reference), "utf8")).toBe(
    page(entries, KNOWN_DIFFERENCES, SUITES),
  );
});

test("the page shows the versions that are run, and what is asked", () => {
  const shown = entries.map(({ suite, source, about }) => ({ name: suite, source, about }));
  const run = SUITES.map(({ name, source, about }) => ({ name, source, about }));
  expect(shown).toEqual(run.filter(({ name }) => entries.some(({ suite }) => suite === name)));
});

test("every suite has a section, or is named among those without a recorded run", () => {
  const text = page(entries, KNOWN_DIFFERENCES, SUITES);
  const [, missing = ""] = /^No whole run is recorded of: (.*?)^$/ms.exec(text) ?? [];
  for (const { name, source } of SUITES) {
    const isRecorded = entries.some(({ suite }) => suite === name);
    expect(text.includes(`\n## ${name}\n`), name).toBe(isRecorded);
    expect(missing.replaceAll("\n", " ").includes(`${name} (\`${source}\`)`), name).toBe(!isRecorded);
  }
});

test("control characters in the name of a case are shown, and not written", () => {
  const failure = { contestant: "envoy", part: "TLS", name: "a \0 and \x1f", reason: "none" } as const;
  const entry = { suite: "s", source: "x", about: "y.", rows: [], failures: [failure] };
  expect(page([entry], [], [])).toContain("`a \\x00 and \\x1f`");
});

test("every known difference belongs to a suite and says why", () => {
  const names = SUITES.map(({ name }) => name);
  for (const { suite, reason } of KNOWN_DIFFERENCES) {
    expect(names).toContain(suite);
    expect(reason.length).toBeGreaterThan(20);
  }
});
