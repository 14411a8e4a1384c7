import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { completionScript, SHELLS } from "../../src/cli/completion/completion-script.ts";
import { wantsColours } from "../../src/cli/foundation/terminal.ts";
import { folder, mergeway, ROOT } from "./mergeway.ts";

describe("the program", () => {
  test("tells its version", async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    expect(await mergeway(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test("lists its commands", async () => {
    const { code, stdout } = await mergeway([]);
    expect(code).toBe(0);
    for (const { name, summary } of COMMANDS) expect(stdout).toContain(`  ${name.padEnd(10)}  ${summary}\n`);
  });

  test("tells everything about a command", async () => {
    const { code, stdout } = await mergeway(["check", "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("--fail-on error|warning|info|never");
    expect(stdout).toContain("(default warning)");
    expect(stdout).toContain("mergeway check new/ --against old/ --format github");
  });

  test("ends with 2 and says what to do when it cannot run", async () => {
    const { code, stdout, stderr } = await mergeway(["status", "/nowhere/at/all"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe(
      "error: /nowhere/at/all: there is no such file or folder\nCheck the path; the file may have been removed while it was read.\n",
    );
  });

  test("says so when a folder holds nothing to read", async () => {
    const { code, stderr } = await mergeway(["check", folder({ "readme.txt": "hello" })]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/there is no YAML or JSON file in/);
  });

  test("ends quietly when its reader has had enough", () => {
    const script = `"${process.execPath}" src/main.ts status examples/two-teams -o yaml | head -1; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { cwd: ROOT, encoding: "utf8" });
    expect(stdout).toMatch(/^apiVersion: .*\n0\n$/);
    expect(stderr).toBe("");
  });
});

test.each([
  [{ isTty: true, env: {} }, true],
  [{ isTty: false, env: {} }, false],
  [{ isTty: true, env: { NO_COLOR: "1" } }, false],
  [{ isTty: true, env: { NO_COLOR: "" } }, true],
  [{ isTty: true, env: { TERM: "dumb" } }, false],
  [{ isTty: false, env: { FORCE_COLOR: "1" } }, true],
  [{ isTty: true, env: { FORCE_COLOR: "0" } }, false],
  [{ isTty: true, env: { FORCE_COLOR: "1", NO_COLOR: "1" } }, false],
])("colours: %j → %j", (settings, wanted) => {
  expect(wantsColours(settings)).toBe(wanted);
});

test("colours reach the output, and only when they are wanted", async () => {
  const forced = await mergeway(["status", "examples/two-teams"], { env: { FORCE_COLOR: "1" } });
  const plain = await mergeway(["status", "examples/two-teams"]);
  expect(forced.stdout).toContain("\u001b[32mserving");
  expect(plain.stdout).not.toContain("\u001b");
});

describe("completion", () => {
  test.each(SHELLS)("%s knows every command and flag", (shell) => {
    const script = completionScript(shell, COMMANDS);
    for (const { name, flags } of COMMANDS) {
      expect(script).toContain(name);
      for (const flag of Object.keys(flags))
        expect(script).toContain(shell === "fish" ? `-l ${flag}` : `--${flag}`);
    }
  });

  function complete(...words: string[]): string[] {
    const list = words.map((word) => `'${word}'`).join(" ");
    const script = `source <("${process.execPath}" src/main.ts completion bash)
COMP_WORDS=(mergeway ${list}); COMP_CWORD=${words.length}; _mergeway; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { cwd: ROOT, encoding: "utf8" });
    expect(stderr).toBe("");
    return stdout.split("\n").filter((word) => word !== "");
  }

  test("bash completes commands, flags, values and files", () => {
    expect(complete("sta")).toEqual(["status"]);
    expect(complete("check", "--f")).toEqual(["--format", "--fail-on"]);
    expect(complete("check", "--format", "s")).toEqual(["sarif"]);
    expect(complete("completion", "f")).toEqual(["fish"]);
    expect(complete("status", "pack")).toEqual(["package-lock.json", "package.json"]);
  });

  test("an unknown shell is refused", async () => {
    const { code, stderr } = await mergeway(["completion", "tcsh"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Use one of bash, zsh, fish.");
  });
});
