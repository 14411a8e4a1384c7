/** docs/reference/policies.md says of BackendPolicies what the engine does. */
import { expect, test } from "vitest";
import { openManifests } from "../../src/cli/workspace/workspace.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { BACKEND_FIELDS, type BackendField } from "../../src/engine/policies/backend-fields.ts";
import { folder } from "./mergeway.ts";
import { BACKEND_LEVELS, type BackendLevel, sectionsOf } from "./policy-tables.ts";

const WORLD = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: one}
spec:
  gatewayClassName: mergeway
  listeners: [{name: own, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: one}
spec:
  parentRefs: [{name: gw}]
  rules: [{name: rule, backendRefs: [{name: web, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: one}
spec: {ports: [{name: http, port: 80}]}
`;

const TARGETS: Readonly<Record<BackendLevel, string>> = {
  Gateway: "{kind: Gateway, name: gw}",
  Service: "{group: '', kind: Service, name: web}",
  port: "{group: '', kind: Service, name: web, sectionName: http}",
  route: "{kind: HTTPRoute, name: web}",
  rule: "{kind: HTTPRoute, name: web, sectionName: rule}",
};

const SETTINGS: Readonly<Record<BackendField, string>> = {
  loadBalancing: "{loadBalancing: {type: LeastRequest}}",
  sessionPersistence: "{sessionPersistence: {cookie: {name: cart}}}",
  limits: "{limits: {requests: 10}}",
};

function backendsOf(engine: Engine): readonly object[] {
  return [...engine.plan()].flatMap((item) => {
    if (item.type !== "backend") return [];
    const { balancing, persistence, limits } = item;
    return [{ balancing, persistence, limits }];
  });
}

const cases = BACKEND_FIELDS.flatMap((field) => BACKEND_LEVELS.map((level) => ({ field, level })));

test.each(cases)("$field of a BackendPolicy holds at the level of a $level", async ({ field, level }) => {
  const policy = `
apiVersion: mergeway.dev/v1alpha1
kind: BackendPolicy
metadata: {name: own, namespace: one}
spec: {targetRefs: [${TARGETS[level]}], overrides: ${SETTINGS[field]}}
`;
  const { engine } = await openManifests([folder({ "all.yaml": `${WORLD}---${policy}` })]);
  const without = await openManifests([folder({ "all.yaml": WORLD })]);
  expect(backendsOf(without.engine)).toEqual([{}]);
  expect(backendsOf(engine)).not.toEqual([{}]);
  const verdict = engine.verdict("BackendPolicy/one/own");
  const conditions = verdict?.type === "policy" ? verdict.ancestors.flatMap((each) => each.conditions) : [];
  expect(conditions).toContainEqual(expect.objectContaining({ type: "Accepted", status: "True" }));
});

test("the table has every field of both sections", () => {
  const { defaults, overrides } = sectionsOf("BackendPolicy");
  expect(overrides.properties).toEqual(defaults.properties);
  expect(Object.keys(defaults.properties ?? {}).sort()).toEqual([...BACKEND_FIELDS].sort());
});
