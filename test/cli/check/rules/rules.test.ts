import { describe, expect, test } from "vitest";
import { check } from "../../../../src/cli/check/check.ts";
import { RULES } from "../../../../src/cli/check/rule-table.ts";
import { openManifests } from "../../../../src/cli/workspace/workspace.ts";
import { folder } from "../../mergeway.ts";
import { CLASS, GATEWAY, NOW, set } from "./case-manifests.ts";
import { CERTIFICATE_CASES } from "./certificate-cases.ts";
import type { CheckCase } from "./check-case.ts";
import { LISTENER_CASES } from "./listener-cases.ts";
import { OWNER_CASES } from "./owner-cases.ts";
import { POLICY_CASES, policy } from "./policy-cases.ts";
import { REFERENCE_CASES } from "./reference-cases.ts";
import { ROUTE_CASES } from "./route-cases.ts";
import { TENANT_CASES } from "./tenant-cases.ts";

const CASES: readonly CheckCase[] = [
  ...OWNER_CASES,
  ...LISTENER_CASES,
  ...CERTIFICATE_CASES,
  ...REFERENCE_CASES,
  ...POLICY_CASES,
  ...ROUTE_CASES,
  ...TENANT_CASES,
];

async function findingsOf(files: Readonly<Record<string, string>>): Promise<ReturnType<typeof check>> {
  const workspace = await openManifests([folder(files)]);
  return check(workspace, { now: NOW, expiryDays: 30 });
}

describe("rules", () => {
  test("the manifest that all cases build on has no findings", async () => {
    expect(await findingsOf({ "all.yaml": GATEWAY + set("team-a", { hostname: "a.example.com" }) })).toEqual(
      [],
    );
  });

  test.each(CASES)(
    "$rule reports its case, and no other rule does",
    async ({ rule, text, owner, message, at, beside = [] }) => {
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
      expect(findings.filter((finding) => finding.rule !== rule && !beside.includes(finding.rule))).toEqual(
        [],
      );
    },
  );

  test("every rule has a case", () => {
    expect([...new Set(CASES.map(({ rule }) => rule))].sort()).toEqual(RULES.map(({ id }) => id).sort());
  });

  test("for a parent of the wrong kind the remedy names the kind that exists", async () => {
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

  test.each([
    ["a network within the override's", "allow: [10.1.0.0/16]", []],
    ["a network around the override's", "allow: ['0.0.0.0/0']", []],
    ["other networks", "allow: [192.0.2.0/24, '2001:db8::/32']", ["policy-looser"]],
    ["denied networks alone", "deny: [192.0.2.0/24]", []],
  ])("an address list with %s beside an override", async (_title, list, expected) => {
    const text =
      GATEWAY +
      set("team-a", { hostname: "a.example.com" }) +
      policy({
        name: "base",
        namespace: "infra",
        targets: "{kind: Gateway, name: shared}",
        rest: "overrides: {clientAddresses: {allow: [10.0.0.0/8]}}",
      }) +
      policy({
        targets: "{kind: HTTPRoute, name: web}",
        rest: `overrides: {clientAddresses: {${list}}}`,
      });
    const findings = await findingsOf({ "all.yaml": text });
    expect(findings.map(({ rule }) => rule)).toEqual(expected);
    // Whoever owns the override is not the business of whoever owns the list.
    expect(JSON.stringify(findings)).not.toContain("infra");
  });

  test("a policy of a route that no listener has taken is without effect", async () => {
    const text = `${GATEWAY}${policy({
      targets: "{kind: HTTPRoute, name: lost}",
      rest: "overrides: {rateLimits: [{requests: 1}]}",
    })}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: team-a}
spec: {parentRefs: [{name: shared, namespace: infra}], rules: [{}]}
`;
    const findings = await findingsOf({ "all.yaml": text });
    expect(findings.find(({ rule }) => rule === "policy-without-effect")).toMatchObject({
      message: "it reaches no listener that is served",
    });
  });

  test("reading errors and duplicates are findings", async () => {
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
