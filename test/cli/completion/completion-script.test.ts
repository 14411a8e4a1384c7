import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { completionScript, SHELLS } from "../../../src/cli/completion/completion-script.ts";
import { mergeway, ROOT } from "../mergeway.ts";

describe("the completion script", () => {
  test.each(SHELLS)("of %s knows every command and flag", (shell) => {
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

  test("of bash completes commands, flags, values and files", () => {
    expect(complete("sta")).toEqual(["status"]);
    expect(complete("check", "--f")).toEqual(["--format", "--fail-on"]);
    expect(complete("check", "--format", "s")).toEqual(["sarif"]);
    expect(complete("completion", "f")).toEqual(["fish"]);
    expect(complete("status", "pack")).toEqual(["package-lock.json", "package.json"]);
  });

  test("of an unknown shell is refused", async () => {
    const { code, stderr } = await mergeway(["completion", "tcsh"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Use one of bash, zsh, fish.");
  });
});
