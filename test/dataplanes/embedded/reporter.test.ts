import { beforeEach, expect, test } from "vitest";
import { Reporter } from "../../../src/dataplanes/embedded/reporter.ts";
import { RoutingTable } from "../../../src/matching/routing-table.ts";
import type { ItemReport } from "../../../src/plan/item-report.ts";
import type { PlanDelta, PlanItem } from "../../../src/plan/plan.ts";
import { listener, port } from "../support/plan-builder.ts";

const web = port(80);
const BOUND = { bound: true } as const;

let table: RoutingTable;
let reporter: Reporter;
let told: ItemReport[];

beforeEach(() => {
  table = new RoutingTable();
  reporter = new Reporter(table);
  told = [];
  reporter.onReport((reports) => told.push(...reports));
});

function upsert(...upserts: readonly PlanItem[]): PlanDelta {
  const delta: PlanDelta = { upserts, removes: [] };
  reporter.beforeApply(delta);
  table.apply(delta);
  return delta;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("a listener that changes is not reported again before all threads have the change", async () => {
  reporter.afterApply(upsert(web, listener("a", web, "one.example.com")));
  reporter.portOutcome(web.id, BOUND);
  await turn();
  expect(told.map(({ id }) => id).sort()).toEqual(["a", web.id]);
  const change = upsert(listener("a", web, "two.example.com"));
  // Something else makes the listener worth a look meanwhile.
  reporter.portOutcome(web.id, { bound: false, message: "taken" });
  reporter.portOutcome(web.id, BOUND);
  await turn();
  expect(told).toHaveLength(2);
  reporter.afterApply(change);
  await turn();
  expect(told.slice(2)).toEqual([{ id: "a", state: "programmed" }]);
});

test("of two changes that threads have not taken yet, the last is reported when it is taken", async () => {
  reporter.afterApply(upsert(web, listener("a", web, "one.example.com")));
  reporter.portOutcome(web.id, BOUND);
  await turn();
  const first = upsert(listener("a", web, "two.example.com"));
  const second = upsert(listener("a", web, "three.example.com"));
  reporter.afterApply(first);
  await turn();
  expect(told).toHaveLength(2);
  reporter.afterApply(second);
  await turn();
  expect(told).toHaveLength(3);
});
