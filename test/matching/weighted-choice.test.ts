import { describe, expect, it } from "vitest";
import { chooseWeighted } from "../../src/matching/weighted-choice.ts";
import type { WeightedBackend } from "../../src/plan/rule.ts";
import { seeded } from "../dataplanes/support/sockets.ts";

function entries(...weights: readonly (readonly [string | undefined, number])[]): readonly WeightedBackend[] {
  return weights.map(([backend, weight]) => ({
    weight,
    filters: {},
    ...(backend !== undefined && { backend }),
  }));
}

function shares(backends: readonly WeightedBackend[], draws: number): Record<string, number> {
  const random = seeded(42);
  const count: Record<string, number> = {};
  for (let i = 0; i < draws; i++) {
    const chosen = chooseWeighted(backends, random);
    const name = chosen === undefined ? "nothing" : (chosen.backend ?? "invalid");
    count[name] = (count[name] ?? 0) + 1 / draws;
  }
  return count;
}

describe("chooseWeighted", () => {
  it("gives each backend its share, and an invalid reference too", () => {
    const seen = shares(entries(["a", 70], ["b", 20], [undefined, 10], ["never", 0]), 100_000);
    expect(Object.keys(seen).sort()).toEqual(["a", "b", "invalid"]);
    expect(seen["a"]).toBeCloseTo(0.7, 1);
    expect(seen["b"]).toBeCloseTo(0.2, 1);
    expect(seen["invalid"]).toBeCloseTo(0.1, 1);
  });

  it("chooses nothing where the weights sum to 0", () => {
    expect(chooseWeighted([], () => 0)).toBeUndefined();
    expect(chooseWeighted(entries(["a", 0]), () => 0)).toBeUndefined();
    expect(chooseWeighted(entries(["a", 0], ["b", 0]), () => 0.5)).toBeUndefined();
  });

  it("chooses the first and the last backend at the ends of the range", () => {
    const backends = entries(["zero", 0], ["first", 1], ["last", 1], ["none", 0]);
    expect(chooseWeighted(backends, () => 0)?.backend).toBe("first");
    expect(chooseWeighted(backends, () => 0.4999)?.backend).toBe("first");
    expect(chooseWeighted(backends, () => 0.5)?.backend).toBe("last");
    expect(chooseWeighted(backends, () => 1 - Number.EPSILON)?.backend).toBe("last");
  });

  it("gives the same shares however large the weights are", () => {
    const seen = shares(entries(["a", 1_000_000], ["b", 1_000_000]), 20_000);
    expect(seen["a"]).toBeGreaterThan(0.48);
    expect(seen["a"]).toBeLessThan(0.52);
  });
});
