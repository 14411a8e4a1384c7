import { describe, expect, test } from "vitest";
import { OnDemandNames } from "../../../../src/dataplanes/envoy/ads/on-demand-names.ts";

const CAPACITY = 6;
const PER_SECOND = 4;

function flooded(owner: string, count: number, names: OnDemandNames): readonly (string | undefined)[] {
  return Array.from({ length: count }, (_, at) => names.admit(`${owner}-${at}`, owner));
}

describe("on-demand names", () => {
  test("beyond the limit the latest waiting name of the owner with the most is rejected", () => {
    const names = new OnDemandNames(CAPACITY, PER_SECOND);
    expect(flooded("loud", 6, names)).toEqual([
      ...[undefined, undefined, undefined, undefined],
      ...["loud-4", "loud-5"],
    ]);
    expect(names.admit("calm-0", "calm")).toBe("loud-3");
    expect(names.size).toBe(PER_SECOND);
    expect(names.isWaiting("calm-0")).toBe(true);
    expect(names.has("loud-3")).toBe(false);
  });

  test("owners take turns", () => {
    const names = new OnDemandNames(CAPACITY, PER_SECOND);
    flooded("loud", 3, names);
    names.admit("calm-0", "calm");
    expect(names.takeDue()).toEqual(["loud-0", "calm-0", "loud-1", "loud-2"]);
    expect(names.hasWaiting).toBe(false);
    names.admit("late", "calm");
    expect(names.takeDue(), "a second has not passed").toEqual([]);
  });

  test("no more are answered than Envoy acknowledges, and a new owner does not wait for the flood", () => {
    const names = new OnDemandNames(1_000, 500);
    flooded("loud", 500, names);
    const first = names.takeDue();
    expect(first.length).toBeLessThan(100);
    expect(names.takeDue()).toEqual([]);
    names.admit("calm-0", "calm");
    for (const name of first.slice(0, 2)) names.answered(name);
    expect(names.takeDue()).toContain("calm-0");
  });

  test("the oldest names of the owner with the most are removed first", () => {
    const names = new OnDemandNames(CAPACITY, PER_SECOND);
    names.keep("calm-0", "calm");
    names.keep("calm-1", "calm");
    for (let at = 0; at < 6; at++) names.keep(`loud-${at}`, "loud");
    expect(names.takeExcess()).toEqual(["loud-0", "loud-1"]);
    expect(names.takeExcess()).toEqual([]);
    expect([...names.names()].sort()).toEqual(["calm-0", "calm-1", "loud-2", "loud-3", "loud-4", "loud-5"]);
  });

  test("a name that is asked for again counts once", () => {
    const names = new OnDemandNames(CAPACITY, PER_SECOND);
    names.keep("calm-0", "calm");
    names.admit("calm-0", "other");
    expect(names.size).toBe(1);
    expect(names.takeDue()).toEqual(["calm-0"]);
    names.delete("calm-0");
    expect(names.size).toBe(0);
  });
});
