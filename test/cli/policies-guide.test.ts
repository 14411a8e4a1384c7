/** docs/guides/policies.md: its YAML is that of the example, and its commands say what it shows. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { mergeway, ROOT } from "./mergeway.ts";

const GUIDE = readFileSync(join(ROOT, "docs/guides/policies.md"), "utf8");
const EXAMPLE = join(ROOT, "examples/policies");

function blocks(language: string): readonly string[] {
  return Array.from(GUIDE.matchAll(/^```(\w+)\n(.*?)^```$/gms))
    .filter(([, each]) => each === language)
    .map(([, , text = ""]) => text);
}

function documents(text: string): readonly unknown[] {
  return parseAllDocuments(text).map((document) => document.toJS() as unknown);
}

describe("the guide of policies", () => {
  test("shows the policies of the example, all of them and as they are", () => {
    const written = readdirSync(EXAMPLE)
      .filter((file) => file.endsWith(".yaml"))
      .flatMap((file) => documents(readFileSync(join(EXAMPLE, file), "utf8")))
      .filter((each) => (each as { kind: string }).kind.endsWith("Policy"));
    const shown = blocks("yaml").flatMap(documents);
    expect(written.length).toBeGreaterThan(3);
    for (const each of written) expect(shown).toContainEqual(each);
  });

  test("shows no policy that the API server would refuse", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mergeway-guide-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const [index, text] of blocks("yaml").entries()) writeFileSync(join(folder, `${index}.yaml`), text);
    const { stdout } = await mergeway(["check", folder]);
    expect(stdout).toContain("[policy-target]");
    expect(stdout).not.toContain("[schema/");
  });

  const commands = blocks("sh")
    .flatMap((text) => text.trim().split("\n"))
    .filter((line) => line.startsWith("mergeway "));

  test("has commands of all three sorts", () => {
    expect(commands.map((line) => line.split(" ")[1])).toEqual(["status", "explain", "check"]);
  });

  test("prints what it shows", async () => {
    const outcomes = await Promise.all(commands.map((line) => mergeway(line.split(" ").slice(1))));
    for (const { code, stderr } of outcomes) expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const printed = outcomes.map(({ stdout }) => stdout).join("\n");
    const shown = blocks("text").flatMap((text) => text.trimEnd().split("\n"));
    expect(shown.length).toBeGreaterThan(4);
    for (const line of shown) expect(printed).toContain(line);
  });
});
