import { expect, test } from "vitest";
import { mergeway } from "../mergeway.ts";

const FOLDER = "examples/two-teams";

test("check --without tells which hostnames would change hands or go, and nothing else", async () => {
  const args = ["--without", "ListenerSet/team-coffee/coffee", "--format", "json"];
  const { code, stdout } = await mergeway(["check", FOLDER, ...args]);
  expect(code).toBe(1);
  const { findings, hostnames } = JSON.parse(stdout) as {
    findings: readonly { readonly rule: string }[];
    hostnames: readonly unknown[];
  };
  expect(hostnames).toEqual(
    [8080, 8443].map((port) => ({
      change: "owner-changed",
      gateway: "platform/shared",
      port,
      hostname: "coffee.example.com",
      before: `ListenerSet team-coffee/coffee, listener ${port === 8080 ? "http" : "https"}`,
      after: `ListenerSet team-zest/zest, listener ${port === 8080 ? "http" : "https"}`,
    })),
  );
  expect(findings.map(({ rule }) => rule)).not.toContain("hostname-conflict");
});

test("check --without refuses an object that is not there, and a second comparison", async () => {
  const absent = await mergeway(["check", FOLDER, "--without", "ListenerSet/team-tea/none"]);
  expect([absent.code, absent.stderr]).toEqual([2, expect.stringContaining("there is no ListenerSet")]);
  const two = await mergeway(["check", FOLDER, "--without", "Service/team-tea/tea", "--against", FOLDER]);
  expect([two.code, two.stderr]).toEqual([2, expect.stringContaining("two comparisons")]);
});
