import { describe, expect, test } from "vitest";
import { quotaSeries } from "../../src/controller/quota-series.ts";
import type { QuotaUse } from "../../src/engine/tenancy/quota-use.ts";

function use(namespace: string, used: number, limit = 10): QuotaUse {
  return { gateway: "Gateway/infra/shared", namespace, resources: [{ resource: "listeners", used, limit }] };
}

const crowd = Array.from({ length: 2_500 }, (_, place) => use(`team-${String(place).padStart(4, "0")}`, 1));
const BASE = { gateway: "infra/shared", resource: "listeners" };

describe("series of quotas", () => {
  test("name each namespace, while there are few", () => {
    expect(quotaSeries([use("b", 3), use("a", 2)], { namesTenants: true })).toEqual([
      { ...BASE, namespace: "a", used: 2, limit: 10 },
      { ...BASE, namespace: "b", used: 3, limit: 10 },
    ]);
  });

  test("are bounded, and what is beyond is summed up", () => {
    const series = quotaSeries(crowd, { namesTenants: true });
    expect(series).toHaveLength(1_001);
    expect(series.at(-1)).toEqual({ ...BASE, namespace: "Overflow", used: 1_500, limit: 15_000 });
    expect(series.reduce((sum, { used }) => sum + used, 0)).toBe(2_500);
  });

  test("name those first that are at a limit, and then those near one", () => {
    const series = quotaSeries([...crowd, use("z-near", 9), use("zz-full", 12)], { namesTenants: true });
    expect(series.slice(0, 3).map(({ namespace }) => namespace)).toEqual(["zz-full", "z-near", "team-0000"]);
  });

  test("name nobody where that is not asked for", () => {
    expect(quotaSeries([use("a", 2), use("b", 3, 5)], { namesTenants: false })).toEqual([
      { ...BASE, namespace: "Overflow", used: 5, limit: 15 },
    ]);
  });
});
