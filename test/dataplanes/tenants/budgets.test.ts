import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BufferedBytes } from "../../../src/dataplanes/embedded/limits/buffered-bytes.ts";
import { type TenantBudget, TenantBudgets } from "../../../src/dataplanes/embedded/limits/tenant-budgets.ts";
import type { GatewayItem, ListenerItem, OwnerRef } from "../../../src/plan/plan.ts";
import { DEFAULT_TENANT_LIMITS } from "../../../src/plan/tenant-limits.ts";
import { gateway, listener, port } from "../support/plan-builder.ts";

const http = port(80);

function limited(connections: number, requests: number): GatewayItem {
  const tenantLimits = { ...DEFAULT_TENANT_LIMITS, connections, requests };
  return { type: "gateway", id: "gateway", gateway, tenantLimits };
}

function ownedBy(id: string, name: string, kind: OwnerRef["kind"] = "ListenerSet"): ListenerItem {
  return listener(id, http, `${id}.example`, { owner: { kind, namespace: "team", name } });
}

function budgetOf(budgets: TenantBudgets, id: string): TenantBudget {
  const budget = budgets.of(id);
  if (budget === undefined) throw new Error(`${id} has no budget`);
  return budget;
}

describe("budgets of tenants", () => {
  test("listeners of one owner share a budget, and those of another kind of the same name do not", () => {
    const budgets = new TenantBudgets();
    budgets.apply({
      upserts: [limited(0, 1), ownedBy("a", "own"), ownedBy("b", "own"), ownedBy("c", "own", "XListenerSet")],
      removes: [],
    });
    expect(budgetOf(budgets, "a").takeRequest()).toBe(true);
    expect(budgetOf(budgets, "b").takeRequest()).toBe(false);
    expect(budgetOf(budgets, "c").takeRequest()).toBe(true);
  });

  test("the Gateway's own listeners have no budget, a child Gateway's do", () => {
    const budgets = new TenantBudgets();
    const [namespace = "", name = ""] = gateway.split("/");
    const own = listener("own", http, "", { owner: { kind: "Gateway", namespace, name } });
    budgets.apply({ upserts: [own, ownedBy("child", "child", "Gateway")], removes: [] });
    expect(budgets.of("own")).toBeUndefined();
    expect(budgets.of("child")).toBeDefined();
  });

  test("a limit is divided among threads and rounded up, and none stays none", () => {
    const budgets = new TenantBudgets(4);
    budgets.apply({ upserts: [limited(0, 5)], removes: [] });
    expect(budgets.limitsOf(gateway)).toEqual({
      connections: 0,
      requests: 2,
      backendConnections: 256,
      bufferedBytes: 32 * 1024 * 1024,
    });
    budgets.apply({ upserts: [], removes: ["gateway"] });
    expect(budgets.limitsOf(gateway).requests).toBe(500);
  });

  test("what a request has waiting counts once, up to the limit, until the request is over", () => {
    const budgets = new TenantBudgets();
    const tenantLimits = { ...DEFAULT_TENANT_LIMITS, bufferedBytes: 100 };
    const item: GatewayItem = { type: "gateway", id: "gateway", gateway, tenantLimits };
    budgets.apply({ upserts: [item, ownedBy("a", "own"), ownedBy("b", "other")], removes: [] });
    const budget = budgetOf(budgets, "a");
    const [one, two] = [new BufferedBytes(budget), new BufferedBytes(budget)];
    one.set("body", 60);
    one.set("body", 50);
    one.set("answer", 20);
    expect([budget.bufferedBytes, budget.isFull]).toEqual([70, false]);
    two.set("body", 30);
    expect([budget.bufferedBytes, two.isFull]).toEqual([100, true]);
    expect(budgetOf(budgets, "b").isFull).toBe(false);
    one.release();
    one.release();
    one.set("body", 1_000);
    expect([budget.bufferedBytes, two.isFull]).toEqual([30, false]);
    budgets.apply({
      upserts: [{ ...item, tenantLimits: { ...tenantLimits, bufferedBytes: 0 } }],
      removes: [],
    });
    two.set("body", 1_000_000);
    expect(two.isFull).toBe(false);
  });

  test("a tenant that leaves and comes back still has what is under way", () => {
    const budgets = new TenantBudgets();
    budgets.apply({ upserts: [limited(0, 1), ownedBy("a", "own")], removes: [] });
    const before = budgetOf(budgets, "a");
    expect(before.takeRequest()).toBe(true);
    budgets.apply({ upserts: [], removes: ["a"] });
    budgets.apply({ upserts: [ownedBy("a", "own")], removes: [] });
    expect(budgetOf(budgets, "a").takeRequest()).toBe(false);
    before.giveBackRequest();
    expect(budgetOf(budgets, "a").takeRequest()).toBe(true);
  });

  const owner = fc.constantFrom("one", "two");
  const id = fc.constantFrom("a", "b", "c");
  const step = fc.oneof(
    fc.record({ do: fc.constant("upsert" as const), id, owner }),
    fc.record({ do: fc.constant("remove" as const), id }),
    fc.record({ do: fc.constant("request" as const), id }),
    fc.record({ do: fc.constant("connection" as const), id }),
    fc.record({ do: fc.constant("end" as const), at: fc.nat() }),
    fc.record({ do: fc.constant("limit" as const), to: fc.nat(4) }),
  );

  test("whatever happens, counters are those of what is under way, and nothing is left in the end", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const budgets = new TenantBudgets();
        const owners = new Map<string, string>();
        const underWay: { readonly owner: string; readonly type: string; readonly end: () => void }[] = [];
        let limit = 2;
        budgets.apply({ upserts: [limited(limit, limit)], removes: [] });
        const count = (of: string, type: string): number =>
          underWay.filter((each) => each.owner === of && each.type === type).length;
        for (const each of steps) {
          if (each.do === "upsert") {
            owners.set(each.id, each.owner);
            budgets.apply({ upserts: [ownedBy(each.id, each.owner)], removes: [] });
          } else if (each.do === "remove") {
            owners.delete(each.id);
            budgets.apply({ upserts: [], removes: [each.id] });
          } else if (each.do === "limit") {
            limit = each.to;
            budgets.apply({ upserts: [limited(limit, limit)], removes: [] });
          } else if (each.do === "end") {
            underWay.splice(each.at % Math.max(1, underWay.length), 1)[0]?.end();
          } else {
            const of = owners.get(each.id);
            const budget = budgets.of(each.id);
            expect(budget === undefined).toBe(of === undefined);
            if (budget === undefined || of === undefined) continue;
            const isRequest = each.do === "request";
            const taken = isRequest ? budget.takeRequest() : budget.takeConnection();
            expect(taken).toBe(limit === 0 || count(of, each.do) < limit);
            const end = (): void => {
              if (isRequest) budget.giveBackRequest();
              else budget.giveBackConnection();
            };
            if (taken) underWay.push({ owner: of, type: each.do, end });
          }
          const known = [...budgets.budgets()];
          expect(known.length).toBe(new Set([...owners.values(), ...underWay.map((one) => one.owner)]).size);
        }
        for (const { end } of underWay.splice(0)) end();
        for (const budget of budgets.budgets()) expect([budget.connections, budget.requests]).toEqual([0, 0]);
        budgets.apply({ upserts: [], removes: [...owners.keys()] });
        expect([...budgets.budgets()]).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});
