/** docs/reference/policies.md says what the engine does. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openManifests } from "../../src/cli/workspace/workspace.ts";
import { folder, ROOT } from "./mergeway.ts";
import { FIELDS, isServedAt, LEVELS, type Level, sectionsOf } from "./policy-tables.ts";

const WORLD = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: one}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: own, port: 80, protocol: HTTP, hostname: own.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: one}
spec:
  parentRef: {name: gw}
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: a.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: one}
spec:
  parentRefs: [{kind: ListenerSet, name: set}]
  rules: [{name: rule, filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]
`;

const TARGETS: Readonly<Record<Level, string>> = {
  Gateway: "{kind: Gateway, name: gw}",
  "set or child": "{kind: ListenerSet, name: set}",
  listener: "{kind: ListenerSet, name: set, sectionName: http}",
  route: "{kind: HTTPRoute, name: web}",
  rule: "{kind: HTTPRoute, name: web, sectionName: rule}",
};

const SETTINGS: Readonly<Record<string, string>> = {
  clientAddresses: "{clientAddresses: {deny: [192.0.2.1]}}",
  rateLimits: "{rateLimits: [{requests: 1}]}",
  "clientAddress.proxyProtocol": "{clientAddress: {proxyProtocol: Required}}",
  "clientAddress.forwardedFor": "{clientAddress: {forwardedFor: {trustedHops: 1}}}",
};

describe("where each field holds", () => {
  const cases = FIELDS.flatMap(({ kind, field }) => LEVELS.map((level) => ({ kind, field, level })));

  test.each(cases)("$field of a $kind at the level of a $level", async ({ kind, field, level }) => {
    const policy = `
apiVersion: mergeway.dev/v1alpha1
kind: ${kind}
metadata: {name: own, namespace: one}
spec: {targetRefs: [${TARGETS[level]}], overrides: ${SETTINGS[field]}}
`;
    const { engine } = await openManifests([folder({ "all.yaml": `${WORLD}---${policy}` })]);
    const served = [...engine.plan()].some((item) => {
      if (item.type === "port") return item.clientAddress !== undefined;
      return item.type === "host" && item.rules.some(({ guards }) => guards !== undefined);
    });
    expect(served).toBe(isServedAt(kind, level));
    const verdict = engine.verdict(`${kind}/one/own`);
    const conditions = verdict?.type === "policy" ? verdict.ancestors.flatMap((each) => each.conditions) : [];
    expect(conditions.some(({ type, status }) => type === "Accepted" && status === "True")).toBe(served);
  });

  test("the table has every field of both sections", () => {
    for (const kind of ["TrafficPolicy", "ClientPolicy"] as const) {
      const { defaults, overrides } = sectionsOf(kind);
      expect(overrides.properties).toEqual(defaults.properties);
      const named = FIELDS.filter((each) => each.kind === kind).map(({ field }) => field.split(".")[0]);
      expect([...new Set(named)].sort()).toEqual(Object.keys(defaults.properties ?? {}).sort());
    }
  });
});

test("every reason of a policy's status is documented", () => {
  const page = readFileSync(join(ROOT, "docs/reference/policies.md"), "utf8");
  const files = ["policy-verdicts.ts", "client-policies.ts", "attached-policies.ts"];
  const reasons = files.flatMap((file) =>
    Array.from(
      readFileSync(join(ROOT, "src/engine/policies", file), "utf8").matchAll(
        /(?:reason: |holds\("\w+", )"(\w+)"/g,
      ),
      ([, reason]) => reason as string,
    ),
  );
  expect(new Set(reasons).size).toBeGreaterThan(6);
  expect([...new Set(reasons)].filter((reason) => !page.includes(`| \`${reason}\` |`))).toEqual([]);
});
