import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, mergeway, ROOT } from "../mergeway.ts";
import { CLASS, GATEWAY } from "./rules/case-manifests.ts";

const EXAMPLE = "examples/two-teams";

describe("mergeway check", () => {
  test("prints place, severity, message, rule, owner and remedy, and exits with 1", async () => {
    const { code, stdout } = await mergeway(["check", EXAMPLE]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^examples\/two-teams\/team-zest\.yaml:\d+:\d+ error listener http: HostnameConflict: .* \[listener-conflict\]\n {4}ListenerSet team-zest\/zest, spec\.listeners\[0\]\. Use another hostname/,
    );
    expect(stdout).toMatch(/\n8 files: 2 errors\n$/);
  });

  test("exits with 0 when no finding has the severity of --fail-on", async () => {
    expect((await mergeway(["check", EXAMPLE, "--fail-on", "never"])).code).toBe(0);
    const path = folder({ "all.yaml": GATEWAY.replace(CLASS, "") });
    expect((await mergeway(["check", path])).code).toBe(0);
    expect((await mergeway(["check", path, "--fail-on", "info"])).code).toBe(1);
  });

  test("prints the same findings as JSON", async () => {
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

  test("prints SARIF with tool, rules and places", async () => {
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

  test("escapes delimiters in annotations for GitHub", async () => {
    const path = folder({ "a,b.yaml": "x: 1\n%y: [\n" });
    const { stdout } = await mergeway(["check", ".", "--format", "github"], { cwd: path });
    expect(stdout).toMatch(/^::error file=a%2Cb\.yaml,line=\d+,col=\d+,title=yaml\/[a-z-]+::[^\n]+\n/);
  });

  test("lists with --against the hostnames that are gained, lost or change owner", async () => {
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
