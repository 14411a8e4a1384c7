import { describe, expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import type { Condition } from "../../../src/api/metadata.ts";
import type { Resource } from "../../../src/api/resource.ts";
import type { Terminal } from "../../../src/cli/foundation/terminal.ts";
import { pendingProgramming } from "../../../src/cli/status/pending-programming.ts";
import { statusTable } from "../../../src/cli/status/status-table.ts";
import { statusTree } from "../../../src/cli/status/status-tree.ts";
import { standaloneSettings } from "../../../src/cli/workspace/engine-settings.ts";
import { embeddedFeatures } from "../../../src/dataplanes/embedded/features.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { buildState } from "../../../src/view/build-state.ts";

const PLAIN = { style: (_style: string, text: string) => text } as unknown as Terminal;

/** What `status` prints for a Gateway with this live Programmed condition. */
function shown(
  programmed: object | undefined,
  isLive = true,
  { fromStatuses = false } = {},
): { tree: string; table: string } {
  const gateway = {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "shared", namespace: "infra" },
    spec: { gatewayClassName: "mergeway", listeners: [{ name: "web", port: 80, protocol: "HTTP" }] },
    ...(programmed === undefined ? {} : { status: { conditions: [{ type: "Programmed", ...programmed }] } }),
  } as unknown as Resource;
  const resources = new Map([[keyOf(gateway), gateway]]);
  const engine = new Engine(standaloneSettings({ features: embeddedFeatures, assumeProgrammed: true }));
  engine.apply([{ key: keyOf(gateway), resource: gateway }]);
  const state = buildState({ engine, resources });
  const ofResources = pendingProgramming({ isLive, resources });
  const noteOf: typeof ofResources = (view) =>
    ofResources(fromStatuses ? { ...view, conditions: [programmed as Condition] } : view);
  return { tree: statusTree(state, PLAIN, noteOf), table: statusTable(state, PLAIN, { noteOf }) };
}

describe("the live refusal of a route by the data plane", () => {
  const refusal =
    "the data plane refuses rules[0].retry: requests that the rule matches are answered with 500";
  const objects = (observedGeneration: number): readonly Resource[] =>
    [
      {
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "Gateway",
        metadata: { name: "shared", namespace: "infra" },
        spec: { gatewayClassName: "mergeway", listeners: [{ name: "web", port: 80, protocol: "HTTP" }] },
      },
      {
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "HTTPRoute",
        metadata: { name: "shop", namespace: "infra", generation: 2 },
        spec: {
          parentRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "shared" }],
          rules: [{}],
        },
        status: {
          parents: [
            {
              parentRef: { group: "gateway.networking.k8s.io", kind: "Gateway", name: "shared" },
              controllerName: "mergeway.dev/controller",
              conditions: [
                {
                  type: "mergeway.dev/Programmed",
                  status: "False",
                  reason: "Refused",
                  message: refusal,
                  observedGeneration,
                },
              ],
            },
          ],
        },
      },
    ] as unknown as readonly Resource[];
  const tree = (observedGeneration: number, isLive: boolean): string => {
    const resources = new Map(objects(observedGeneration).map((each) => [keyOf(each), each]));
    const engine = new Engine(standaloneSettings({ features: embeddedFeatures, assumeProgrammed: true }));
    engine.apply([...resources].map(([key, resource]) => ({ key, resource })));
    return statusTree(buildState({ engine, resources, isLive }), PLAIN, () => undefined);
  };

  test("is shown beside the route", () => expect(tree(2, true)).toContain(refusal));
  test("is not shown when it is of an earlier generation", () =>
    expect(tree(1, true)).not.toContain(refusal));
  test("is not shown for objects from files", () => expect(tree(2, false)).not.toContain(refusal));
});

const ALL = "the data plane serves all that is valid";
const LAG = `${ALL}; 1 of 2 replicas has not confirmed the newest configuration: shared-b`;

describe("the live Programmed condition of a Gateway", () => {
  test("is shown when replicas lag", () => {
    const { tree, table } = shown({ status: "True", reason: "Programmed", message: LAG });
    expect(tree).toContain(`├─ ${LAG}\n`);
    expect(table).toContain(`\nGateway infra/shared: ${LAG}\n`);
  });

  test("is shown when replicas lag and the state is that of the statuses alone", () => {
    const lag = { type: "Programmed", status: "True", reason: "Programmed", message: LAG };
    expect(shown(lag, true, { fromStatuses: true }).tree).toContain(`├─ ${LAG}\n`);
  });

  test("is shown when the Gateway is not programmed", () => {
    const { tree, table } = shown({ status: "False", reason: "NoResources", message: "no pod is ready" });
    expect(tree).toContain("├─ not programmed: NoResources: no pod is ready\n");
    expect(table).toContain("Gateway infra/shared: not programmed: NoResources: no pod is ready\n");
  });

  test.each([
    ["everything is programmed", { status: "True", reason: "Programmed", message: ALL }, true],
    ["it is missing", undefined, true],
    ["the objects come from files", { status: "True", reason: "Programmed", message: LAG }, false],
  ])("is not shown when %s", (_name, programmed, isLive) => {
    const { tree, table } = shown(programmed, isLive);
    expect(tree).not.toContain("programmed");
    expect(tree + table).not.toContain("replicas");
    expect(tree + table).not.toContain("Gateway infra/shared:");
  });
});
