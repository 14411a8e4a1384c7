import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const ROOT = new URL("../../", import.meta.url);
const page: string = readFileSync(new URL("docs/reference/hardening.md", ROOT), "utf8");
const rows: readonly (readonly [file: string, title: string])[] = [
  ...page.matchAll(/^\|.*\| `(test\/[^`]+)` \| (.+) \|$/gm),
].map(([, file = "", title = ""]) => [file, title] as const);

describe("the page of hardening", () => {
  test("names tests in every table", () => {
    const tables = page.match(/^\| \| data planes \| test \| title \|$/gm) ?? [];
    expect(tables.length).toBe(3);
    expect(rows.length).toBeGreaterThan(50);
  });

  test.each(rows)("names a test of %s that is there: %s", (file, title) => {
    const path = new URL(file, ROOT);
    expect(existsSync(path)).toBe(true);
    expect(readFileSync(path, "utf8")).toContain(title);
  });
});
