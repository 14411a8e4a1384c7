import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { readText } from "../../tools/cluster/chart.ts";

const LINES = readText("docs/guides/kubectl-mergeway.md")
  .split("\n")
  .filter((line) => line.startsWith("kubectl mergeway "))
  .map((line) => line.replace(/\s+#.*$/, ""));

describe("the guide of kubectl mergeway", () => {
  test("shows every command that reads a cluster", () => {
    const shown = new Set(LINES.map((line) => line.split(" ")[2]));
    expect([...shown].sort()).toEqual(["check", "explain", "page", "status"]);
  });

  test.each(LINES)("uses only existing flags in %s", (line) => {
    const command = COMMANDS.find(({ name }) => name === line.split(" ")[2]);
    const flags = Object.entries(command?.flags ?? {});
    for (const [, dashes = "", name] of line.matchAll(/ (--?)([a-zA-Z-]+)/g)) {
      const known = flags.some(([long, flag]) => (dashes === "--" ? long : flag.short) === name);
      expect(known, `${dashes}${name} of ${command?.name}`).toBe(true);
    }
  });
});
