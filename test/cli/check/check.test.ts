import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { check } from "../../../src/cli/check/check.ts";
import { RULES } from "../../../src/cli/check/rule-table.ts";
import { openManifests } from "../../../src/cli/workspace/workspace.ts";
import { folder, mergeway, ROOT } from "../mergeway.ts";
import { CASES, CLASS, GATEWAY, NOW, set } from "./check-cases.ts";

const EXAMPLE = "examples/two-teams";

async function findingsOf(files: Readonly<Record<string, string>>): Promise<ReturnType<typeof check>> {
  const workspace = await openManifests([folder(files)]);
  return check(workspace, { now: NOW, expiryDays: 30 });
}

describe("rules", () => {
  test("the manifest that all cases build on is clean", async () => {
    expect(await findingsOf({ "all.yaml": GATEWAY + set("team-a", { hostname: "a.example.com" }) })).toEqual(
      [],
    );
  });

  test.each(CASES)("$rule", async ({ rule, text, owner, message, at, beside = [] }) => {
    const findings = await findingsOf({ "all.yaml": text });
    const found = findings.find((finding) => finding.rule === rule);
    expect(found, JSON.stringify(findings, null, 1)).toMatchObject({
      owner,
      message: expect.stringMatching(message),
    });
    const line = text.split("\n")[(found?.line ?? 0) - 1] ?? "";
    expect(line.slice((found?.column ?? 0) - 1)).toContain(at);
    expect(found?.remedy).toMatch(/^[A-Z].*\.$/);
    expect(found?.severity).toBe(RULES.find(({ id }) => id === rule)?.severity);
    expect(findings.filter((finding) => finding.rule !== rule && !beside.includes(finding.rule))).toEqual([]);
  });

  test("every rule has a case", () => {
    expect(CASES.map(({ rule }) => rule).sort()).toEqual(RULES.map(({ id }) => id).sort());
  });

  test("a parent of the wrong kind is not here, and the remedy says which one is", async () => {
    const text =
      GATEWAY +
      set("team-a", { hostname: "a.example.com" }).replace(
        "{kind: ListenerSet, name: web}",
        "{kind: XListenerSet, name: web}",
      );
    const findings = await findingsOf({ "all.yaml": text });
    expect(findings.find(({ rule }) => rule === "route-without-parent")).toMatchObject({
      message: "its parent is not here: gateway.networking.k8s.io/XListenerSet team-a/web",
      remedy: "There is ListenerSet team-a/web: write group gateway.networking.k8s.io and kind ListenerSet.",
    });
  });

  test("reading errors and duplicates are findings like any other", async () => {
    const bad = GATEWAY.replace("port: 80", "port: 0");
    const findings = await findingsOf({ "a.yaml": GATEWAY, "b.yaml": bad, "c.yaml": CLASS });
    expect(findings.map(({ rule, severity, line }) => ({ rule, severity, line }))).toEqual([
      { rule: "duplicate-object", severity: "error", line: 2 },
      { rule: "schema/minimum", severity: "error", line: 13 },
      { rule: "duplicate-object", severity: "error", line: 15 },
      { rule: "duplicate-object", severity: "error", line: 2 },
    ]);
  });
});

describe("mergeway check", () => {
  test("prints place, severity, message, rule, owner and remedy, and ends with 1", async () => {
    const { code, stdout } = await mergeway(["check", EXAMPLE]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^examples\/two-teams\/team-zest\.yaml:\d+:\d+ error listener http: HostnameConflict: .* \[listener-conflict\]\n {4}ListenerSet team-zest\/zest, spec\.listeners\[0\]\. Use another hostname/,
    );
    expect(stdout).toMatch(/\n8 files: 2 errors\n$/);
  });

  test("ends with 0 when nothing is of the severity asked for", async () => {
    expect((await mergeway(["check", EXAMPLE, "--fail-on", "never"])).code).toBe(0);
    const path = folder({ "all.yaml": GATEWAY.replace(CLASS, "") });
    expect((await mergeway(["check", path])).code).toBe(0);
    expect((await mergeway(["check", path, "--fail-on", "info"])).code).toBe(1);
  });

  test("JSON holds what the text shows", async () => {
    const { stdout } = await mergeway(["check", EXAMPLE, "--format", "json"]);
    const { findings } = JSON.parse(stdout) as { findings: Record<string, unknown>[] };
    expect(findings).toHaveLength(2);
    expect(findings[0]).toMatchObject({
      rule: "listener-conflict",
      severity: "error",
      file: "examples/two-teams/team-zest.yaml",
      path: "spec.listeners[0]",
      owner: "ListenerSet team-zest/zest",
    });
  });

  test("SARIF names tool, rules and places", async () => {
    const { stdout } = await mergeway(["check", EXAMPLE, "--format", "sarif"]);
    const { version, runs } = JSON.parse(stdout) as {
      version: string;
      runs: [
        { tool: { driver: { name: string; rules: { id: string }[] } }; results: Record<string, unknown>[] },
      ];
    };
    expect(version).toBe("2.1.0");
    expect(runs[0].tool.driver).toMatchObject({ name: "mergeway", rules: [{ id: "listener-conflict" }] });
    expect(runs[0].results[0]).toMatchObject({
      ruleId: "listener-conflict",
      ruleIndex: 0,
      level: "error",
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: "examples/two-teams/team-zest.yaml" },
            region: { startLine: expect.any(Number), startColumn: expect.any(Number) },
          },
        },
      ],
    });
  });

  test("annotations for GitHub escape what would end them", async () => {
    const path = folder({ "a,b.yaml": "x: 1\n%y: [\n" });
    const { stdout } = await mergeway(["check", ".", "--format", "github"], { cwd: path });
    expect(stdout).toMatch(/^::error file=a%2Cb\.yaml,line=\d+,col=\d+,title=yaml\/[a-z-]+::[^\n]+\n/);
  });

  test("--against lists hostnames gained, lost and handed over", async () => {
    const text = (name: string): string => readFileSync(join(ROOT, EXAMPLE, name), "utf8");
    const files = [
      "gateway.yaml",
      "platform-certificate.yaml",
      "team-zest.yaml",
      "team-zest-certificate.yaml",
    ];
    const after = folder({
      ...Object.fromEntries(files.map((name) => [name, text(name)])),
      "new.yaml": text("team-tea.yaml")
        .replaceAll(/\btea\b/g, "mate")
        .replace(/ {4}- name: https[\s\S]*?---/, "---"),
    });
    const { code, stdout } = await mergeway(["check", after, "--against", EXAMPLE, "--format", "json"]);
    const { hostnames, findings } = JSON.parse(stdout) as {
      hostnames: unknown[];
      findings: { rule: string; severity: string }[];
    };
    expect(code).toBe(1);
    const coffee = "ListenerSet team-coffee/coffee, listener";
    const zest = "ListenerSet team-zest/zest, listener";
    expect(hostnames).toEqual([
      {
        change: "owner-changed",
        gateway: "platform/shared",
        port: 8080,
        hostname: "coffee.example.com",
        before: `${coffee} http`,
        after: `${zest} http`,
      },
      {
        change: "gained",
        gateway: "platform/shared",
        port: 8080,
        hostname: "mate.example.com",
        after: "ListenerSet team-mate/mate, listener http",
      },
      {
        change: "lost",
        gateway: "platform/shared",
        port: 8080,
        hostname: "tea.example.com",
        before: "ListenerSet team-tea/tea, listener http",
      },
      {
        change: "owner-changed",
        gateway: "platform/shared",
        port: 8443,
        hostname: "coffee.example.com",
        before: `${coffee} https`,
        after: `${zest} https`,
      },
      {
        change: "lost",
        gateway: "platform/shared",
        port: 8443,
        hostname: "tea.example.com",
        before: "ListenerSet team-tea/tea, listener https",
      },
    ]);
    expect(
      findings.filter(({ rule }) => rule === "hostname-owner-changed").map(({ severity }) => severity),
    ).toEqual(["error", "error"]);
  });
});
