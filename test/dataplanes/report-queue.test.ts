import { beforeEach, expect, test } from "vitest";
import { ReportQueue, reportFor } from "../../src/dataplanes/report-queue.ts";
import type { ItemReport } from "../../src/plan/item-report.ts";

let fates: Map<string, string | undefined>;
let told: (readonly ItemReport[])[];
let work: number;
let queue: ReportQueue;

beforeEach(() => {
  fates = new Map([["a", undefined]]);
  told = [];
  work = 0;
  queue = new ReportQueue(
    (id) => (fates.has(id) ? reportFor(id, "Broken", fates.get(id)) : undefined),
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

test("a fate is told once, later, and again when it is another", async () => {
  queue.change("a");
  queue.change("a");
  expect(told).toEqual([]);
  await turn();
  queue.change("a");
  await turn();
  expect(told).toEqual([[GOOD]]);
  fates.set("a", "no");
  queue.change("a");
  await turn();
  expect(told).toEqual([[GOOD], [BAD]]);
});

test("what is given anew is told anew; what is gone, and what is not known yet, is not told", async () => {
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

test("work is done a turn at a time, until there is none", async () => {
  work = 3;
  queue.wake();
  await turn();
  expect(work).toBe(2);
  await turn();
  await turn();
  await turn();
  expect(work).toBe(0);
});

test("who comes later hears what was told before", async () => {
  queue.change("a");
  await turn();
  const later: ItemReport[] = [];
  queue.onReport((reports) => later.push(...reports));
  expect(later).toEqual([GOOD]);
});
