import fc from "fast-check";
import { expect, test } from "vitest";
import { offsetsOf, rowAt, scrollFor, spanInSight } from "../../src/page/model/windowing.ts";

const heights = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 200 });

test("every row that touches the sight is drawn", () => {
  fc.assert(
    fc.property(heights, fc.nat(9_000), fc.nat(800), fc.nat(5), (all, top, height, spare) => {
      const offsets = offsetsOf(all.length, (index) => all[index] ?? 0);
      const { first, end } = spanInSight(offsets, { top, height, spare });
      for (const index of all.keys()) {
        const isInSight = (offsets[index] ?? 0) < top + height && (offsets[index + 1] ?? 0) > top;
        if (isInSight) expect(index >= first && index < end).toBe(true);
      }
    }),
  );
});

test("no more rows are drawn than the sight and the spare rows need", () => {
  const offsets = offsetsOf(100_000, () => 30);
  const { first, end } = spanInSight(offsets, { top: 1_500_000, height: 600, spare: 8 });
  expect(first).toBe(50_000 - 8);
  expect(end - first).toBe(21 + 16);
});

test("an empty list has nothing to draw", () => {
  expect(
    spanInSight(
      offsetsOf(0, () => 0),
      { top: 0, height: 600, spare: 8 },
    ),
  ).toEqual({ first: 0, end: 0 });
  expect(
    rowAt(
      offsetsOf(0, () => 0),
      100,
    ),
  ).toBe(0);
});

test("a row above or below the sight is scrolled to, and one within is left where it is", () => {
  const offsets = offsetsOf(100, () => 10);
  expect(scrollFor(offsets, 2, { top: 500, height: 100 })).toBe(20);
  expect(scrollFor(offsets, 80, { top: 500, height: 100 })).toBe(710);
  expect(scrollFor(offsets, 55, { top: 500, height: 100 })).toBe(500);
});
