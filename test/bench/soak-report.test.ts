import { expect, test } from "vitest";
import { classesOf, growthOf } from "../../bench/soak/heap-classes.ts";
import { isWell, type SoakResult, trendsOf } from "../../bench/soak/soak-report.ts";
import type { MemorySample } from "../../bench/soak/subject.ts";

function sample(heap: number, second: number): MemorySample {
  return { second, heap, external: 0, arrayBuffers: 0, malloced: 0, resources: 1, resident: heap * 2 };
}

function result(heaps: readonly number[], failed = 0): SoakResult {
  return {
    plane: "embedded",
    minutes: 1,
    tenants: 200,
    changes: 180,
    requests: 1_000,
    failed,
    reasons: {},
    slowestMs: 10,
    memory: heaps.map(sample),
    growth: [],
  };
}

test("memory that rises only in the first third does not grow", () => {
  expect(isWell(result([10, 20, 30, 30, 31, 30, 30, 31, 30]))).toBe(true);
});

test("memory that rises throughout grows", () => {
  expect(isWell(result([10, 20, 30, 40, 50, 60, 70, 80, 90]))).toBe(false);
});

test("a soak with one failed request fails", () => {
  expect(isWell(result([10, 10, 10, 10, 10, 10], 1))).toBe(false);
});

test("a soak without memory samples fails", () => {
  expect(isWell(result([]))).toBe(false);
});

test("the memory of Envoy is judged when there is an Envoy", () => {
  const memory = [10, 10, 10, 20, 30, 40].map((allocated, second) => ({
    ...sample(10, second),
    envoy: { allocated, heap: allocated, resident: allocated },
  }));
  const grown: SoakResult = { ...result([]), plane: "envoy", memory };
  expect(trendsOf(grown).filter(({ judged }) => judged)).toHaveLength(2);
  expect(isWell(grown)).toBe(false);
});

test("a soak of Envoy whose process was never found fails", () => {
  const calm = [10, 10, 10, 10, 10, 10];
  expect(isWell({ ...result(calm), plane: "envoy" })).toBe(false);
  expect(isWell(result(calm))).toBe(true);
});

test("heap snapshots are compared by the size of each class", () => {
  const snapshot = (nodes: readonly number[]): string =>
    JSON.stringify({
      snapshot: { meta: { node_fields: ["type", "name", "self_size"], node_types: [["object", "string"]] } },
      nodes,
      strings: ["Session", "some text", "Timer"],
    });
  const before = classesOf(snapshot([0, 0, 100, 1, 1, 50, 0, 2, 8]));
  const after = classesOf(snapshot([0, 0, 100, 0, 0, 100, 1, 1, 60, 0, 2, 8]));
  expect(growthOf(before, after)).toEqual([
    { name: "object Session", count: 1, bytes: 100 },
    { name: "(string)", count: 0, bytes: 10 },
  ]);
});
