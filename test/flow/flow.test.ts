import { describe, expect, it } from "vitest";
import type { Engine, EngineDelta } from "../../src/engine/engine.ts";
import { AssignedPorts } from "../../src/flow/assigned-ports.ts";
import { Flow } from "../../src/flow/flow.ts";
import { joined } from "../../src/flow/joined-deltas.ts";
import type { ItemReport } from "../../src/plan/item-report.ts";
import type { PlanItem } from "../../src/plan/plan.ts";

const PORT = { type: "port", id: "port:a", gateway: "a/a" } as unknown as PlanItem;
const LATER = { ...PORT, version: 2 } as unknown as PlanItem;
const NOTHING: EngineDelta = { plan: { upserts: [], removes: [] }, verdicts: new Map() };
const ADDED: EngineDelta = { plan: { upserts: [PORT], removes: [] }, verdicts: new Map() };
const REMOVED: EngineDelta = { plan: { upserts: [], removes: [PORT.id] }, verdicts: new Map() };

/** A flow around an engine that answers changes with these results; tells all that happens. */
function flowOf(
  results: readonly EngineDelta[],
  { answersAtOnce = false, assignedPorts }: { answersAtOnce?: boolean; assignedPorts?: AssignedPorts } = {},
): { readonly flow: Flow; readonly told: readonly string[] } {
  const told: string[] = [];
  const left = [...results];
  const engine = {
    apply: () => {
      told.push("engine: changes");
      return left.shift() ?? NOTHING;
    },
    learn: (facts: object) => {
      const [[kind, value] = []] = Object.entries(facts);
      told.push(`engine: ${kind} ${kind === "forgotten" ? value : ""}`.trim());
      return NOTHING;
    },
    verdict: () => undefined,
  } as unknown as Engine;
  let report: (reports: readonly ItemReport[]) => void = () => {};
  const flow = new Flow({
    engine,
    dataPlane: {
      apply: () => {
        told.push("data plane");
        if (answersAtOnce) report([]);
      },
      onReport: (handler) => {
        report = handler;
      },
    },
    ...(assignedPorts === undefined ? {} : { assignedPorts }),
    onStep: (_delta, { cause, since }) => told.push(`step: ${cause}, ${since}`),
    onIdle: () => told.push("idle"),
  });
  return { flow, told };
}

describe("the flow", () => {
  it("tells the engine a report that comes during a step only after that step", () => {
    const { flow, told } = flowOf([ADDED], { answersAtOnce: true });
    flow.take([], { since: 7 });
    expect(told).toEqual([
      ...["engine: changes", "data plane", "step: resources, 7"],
      ...["engine: reports", "step: reports, undefined"],
      ...["engine: forgotten", "idle"],
    ]);
  });

  it("has the engine forget what was reported of removed items", () => {
    const { flow, told } = flowOf([REMOVED]);
    flow.take([]);
    expect(told).toContain("engine: forgotten port:a");
  });

  it("gives the data plane nothing when the plan stays the same", () => {
    const { flow, told } = flowOf([NOTHING]);
    flow.take([]);
    expect(told).toEqual(["engine: changes", "step: resources, undefined", "idle"]);
  });

  it("brings an XListenerSet with the ports that it had when the process last ran", () => {
    const status = { listeners: [{ name: "x", port: 4_000 }] };
    const { flow } = flowOf([], { assignedPorts: new AssignedPorts(() => status) });
    const resource = { kind: "XListenerSet", metadata: { namespace: "a", name: "a" } } as never;
    flow.take([{ key: "XListenerSet/a/a", resource }]);
    expect(flow.resources.get("XListenerSet/a/a")).toMatchObject({ status });
  });
});

describe("deltas that are joined", () => {
  it.each([
    [
      "keep the later version of an item",
      [ADDED, { ...ADDED, plan: { upserts: [LATER], removes: [] } }],
      [LATER],
      [],
    ],
    ["remove an item that was added before", [ADDED, REMOVED], [], [PORT.id]],
    ["keep an item that is added after it was removed", [REMOVED, ADDED], [PORT], []],
  ])("%s", (_title, deltas, upserts, removes) => {
    expect(joined(deltas).plan).toEqual({ upserts, removes });
  });
});
