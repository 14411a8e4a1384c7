import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LagWatch } from "../../../src/cli/run/lag-watch.ts";
import type { DataPlane } from "../../../src/dataplanes/dataplane.ts";

const LIMIT_MS = 10_000;
let reported: string[];
let waits: (PromiseWithResolvers<boolean> & { readonly gateway: string })[];
let watch: LagWatch;

beforeEach(() => {
  vi.useFakeTimers();
  reported = [];
  waits = [];
  const dataPlane: DataPlane = {
    features: new Set(),
    apply: () => {},
    served: (gateway = "") => {
      const wait = { ...Promise.withResolvers<boolean>(), gateway };
      waits.push(wait);
      return wait.promise;
    },
    onReport: () => {},
    close: async () => {},
  };
  watch = new LagWatch({
    dataPlane,
    onLag: (gateway, isLagging) => reported.push(`${gateway} ${isLagging}`),
  });
});
afterEach(() => vi.useRealTimers());

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

test("a Gateway is reported as lagging until its data plane serves the change", async () => {
  watch.applied(["a/b", "c/d"]);
  waits.find(({ gateway }) => gateway === "c/d")?.resolve(true);
  await pass(LIMIT_MS - 1);
  expect(reported).toEqual([]);
  await pass(1);
  expect(reported).toEqual(["a/b true"]);
  waits[0]?.resolve(true);
  await pass(0);
  expect(reported).toEqual(["a/b true", "a/b false"]);
});

test("changes during a wait are awaited together after it", async () => {
  watch.applied(["a/b"]);
  for (let each = 0; each < 100; each++) watch.applied(["a/b"]);
  expect(waits).toHaveLength(1);
  waits[0]?.resolve(true);
  await pass(0);
  expect(waits).toHaveLength(2);
  waits[1]?.resolve(true);
  await pass(LIMIT_MS);
  expect([waits.length, reported]).toEqual([2, []]);
  watch.applied(["a/b"]);
  await pass(LIMIT_MS);
  expect(reported).toEqual(["a/b true"]);
});

test("a closed data plane is not reported", async () => {
  watch.applied(["a/b"]);
  waits[0]?.resolve(false);
  await pass(10 * LIMIT_MS);
  watch.applied(["a/b"]);
  await pass(10 * LIMIT_MS);
  expect(reported).toEqual([]);
});
