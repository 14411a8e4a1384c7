import { beforeEach, expect, test } from "vitest";
import { ReportQueue, reportFor } from "../../src/dataplanes/report-queue.ts";
import type { ItemReport } from "../../src/plan/item-report.ts";

let outcomes: Map<string, string | undefined>;
let told: (readonly ItemReport[])[];
let work: number;
let queue: ReportQueue;

beforeEach(() => {
  outcomes = new Map([["a", undefined]]);
  told = [];
  work = 0;
  queue = new ReportQueue(
    (id) => (outcomes.has(id) ? reportFor(id, "Broken", outcomes.get(id)) : undefined),
    () => {
      if (work > 0) work--;
      return work > 0;
    },
  );
  queue.onReport((reports) => told.push(reports));
});

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const GOOD: ItemReport = { id: "a", state: "programmed" };
const BAD: ItemReport = { id: "a", state: "rejected", reason: "Broken", message: "no" };

test("a report is passed on once, in a later turn, and again when it has changed", async () => {
  queue.change("a");
  queue.change("a");
  expect(told).toEqual([]);
  await turn();
  queue.change("a");
  await turn();
  expect(told).toEqual([[GOOD]]);
  outcomes.set("a", "no");
  queue.change("a");
  await turn();
  expect(told).toEqual([[GOOD], [BAD]]);
});

test("a renewed item is reported again; a forgotten or pending one is not reported", async () => {
  queue.change("a");
  await turn();
  queue.renew("a");
  queue.change("a");
  queue.change("unknown");
  await turn();
  expect(told).toEqual([[GOOD], [GOOD]]);
  queue.change("a");
  queue.forget("a");
  await turn();
  expect(told).toHaveLength(2);
});

test("a part of the work is done in every turn until none is left", async () => {
  work = 3;
  queue.wake();
  await turn();
  expect(work).toBe(2);
  await turn();
  await turn();
  await turn();
  expect(work).toBe(0);
});

test("a handler that is set later receives the reports that were made before", async () => {
  queue.change("a");
  await turn();
  const later: ItemReport[] = [];
  queue.onReport((reports) => later.push(...reports));
  expect(later).toEqual([GOOD]);
});
