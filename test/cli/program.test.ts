import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { folder, mergeway, ROOT } from "./mergeway.ts";

describe("the program", () => {
  test("prints its version", async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    expect(await mergeway(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test("lists its commands", async () => {
    const { code, stdout } = await mergeway([]);
    expect(code).toBe(0);
    for (const { name, summary } of COMMANDS) expect(stdout).toContain(`  ${name.padEnd(10)}  ${summary}\n`);
  });

  test("prints flags, defaults and examples in the help of a command", async () => {
    const { code, stdout } = await mergeway(["check", "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("--fail-on error|warning|info|never");
    expect(stdout).toContain("(default warning)");
    expect(stdout).toContain("mergeway check new/ --against old/ --format github");
  });

  test("exits with 2 and a remedy when it cannot run", async () => {
    const { code, stdout, stderr } = await mergeway(["status", "/nowhere/at/all"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe(
      "error: /nowhere/at/all: there is no such file or folder\nCheck the path; the file may have been removed while it was read.\n",
    );
  });

  test("reports a folder without YAML or JSON files", async () => {
    const { code, stderr } = await mergeway(["check", folder({ "readme.txt": "hello" })]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/there is no YAML or JSON file in/);
  });

  test("exits with 0 when the reader closes the pipe", () => {
    const script = `"${process.execPath}" src/main.ts status examples/two-teams -o yaml | head -1; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { cwd: ROOT, encoding: "utf8" });
    expect(stdout).toMatch(/^apiVersion: .*\n0\n$/);
    expect(stderr).toBe("");
  });
});

test("the output has colours only when they are wanted", async () => {
  const forced = await mergeway(["status", "examples/two-teams"], { env: { FORCE_COLOR: "1" } });
  const plain = await mergeway(["status", "examples/two-teams"]);
  expect(forced.stdout).toContain("\u001b[32mserving");
  expect(plain.stdout).not.toContain("\u001b");
});
