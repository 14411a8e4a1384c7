/**
 * The plan behind the tunnel: whose rules a name meets, and that deltas give what a fresh start
 * gives.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InnerPlan } from "../../../src/dataplanes/tunnel/inner-plan.ts";
import { RoutingTable } from "../../../src/matching/routing-table.ts";
import type { ListenerItem, PlanDelta, PlanItem } from "../../../src/plan/plan.ts";
import type { Rule } from "../../../src/plan/rule.ts";
import { ASKED, GATEWAY, NAMES, plans } from "./support/random-plans.ts";
import { expectedAnswer } from "./support/reference-reading.ts";

const PORT = `tunnel-port:${GATEWAY}`;

function fresh(items: readonly PlanItem[]): {
  readonly plan: InnerPlan;
  readonly inner: Map<string, PlanItem>;
} {
  const plan = new InnerPlan(() => 8880);
  const { delta } = plan.apply({ upserts: items, removes: [] });
  return { plan, inner: new Map(delta.upserts.map((item) => [item.id, item])) };
}

function difference(before: readonly PlanItem[], after: readonly PlanItem[]): PlanDelta {
  const known = new Map(before.map((item) => [item.id, JSON.stringify(item)]));
  const next = new Set(after.map(({ id }) => id));
  return {
    upserts: after.filter((item) => known.get(item.id) !== JSON.stringify(item)),
    removes: before.filter(({ id }) => !next.has(id)).map(({ id }) => id),
  };
}

function answerOf(inner: Iterable<PlanItem>, name: string, path: string, scheme: string): number {
  const table = new RoutingTable();
  table.apply({ upserts: [...inner], removes: [] });
  const admitted = table.admitHttp(PORT, name);
  if (!("listener" in admitted)) return admitted.status;
  const header = (asked: string): string | undefined => (asked === "x-forwarded-proto" ? scheme : undefined);
  const rule = table.matchRule(admitted.listener.id, name, { method: "GET", path, query: "", header });
  return rule?.action.type === "respond" ? rule.action.status : 404;
}

describe("property", () => {
  test("a name meets the rules of its most specific listener's owner, whatever ports say", () => {
    const request = fc.tuple(
      fc.constantFrom(...NAMES),
      fc.constantFrom(...ASKED),
      fc.constantFrom("http", "https"),
    );
    fc.assert(
      fc.property(plans, request, (items, [name, path, scheme]) => {
        const { inner } = fresh(items);
        expect(answerOf(inner.values(), name, path, scheme)).toBe(expectedAnswer(items, name, path, scheme));
      }),
      { numRuns: 2_000 },
    );
  });

  test("a history of deltas gives what its end gives afresh, inside and in what becomes of listeners", () => {
    fc.assert(
      fc.property(fc.array(plans, { minLength: 1, maxLength: 5 }), (history) => {
        const plan = new InnerPlan(() => 8880);
        const inner = new Map<string, PlanItem>();
        let before: readonly PlanItem[] = [];
        for (const items of history) {
          const { delta } = plan.apply(difference(before, items));
          for (const id of delta.removes) inner.delete(id);
          for (const item of delta.upserts) inner.set(item.id, item);
          expect(delta.removes.filter((id) => delta.upserts.some((item) => item.id === id))).toEqual([]);
          before = items;
        }
        const afresh = fresh(before);
        const sorted = (items: Map<string, PlanItem>): PlanItem[] =>
          [...items.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
        expect(sorted(inner)).toEqual(sorted(afresh.inner));
        for (const { type, id } of before) {
          if (type === "listener") expect(plan.placeOf(id)).toEqual(afresh.plan.placeOf(id));
        }
      }),
      { numRuns: 500 },
    );
  });
});

test("nothing of the inner plan is TLS, and all of it is on one port", () => {
  fc.assert(
    fc.property(plans, (items) => {
      for (const item of fresh(items).inner.values()) {
        if (item.type === "port") expect(item).toMatchObject({ id: PORT, port: 8880, protocol: "http" });
        if (item.type === "listener")
          expect([item.port, item.protocol, item.tls]).toEqual([PORT, "HTTP", undefined]);
      }
    }),
  );
});

test("a listener that changes its protocol has its redirects to https read anew", () => {
  const ports = [
    { type: "port", id: "port-80", gateway: GATEWAY, transport: "tcp", port: 80, protocol: "http" },
    { type: "port", id: "port-443", gateway: GATEWAY, transport: "tcp", port: 443, protocol: "tls" },
  ] as const;
  const http: ListenerItem = {
    type: "listener",
    id: "listener-1",
    gateway: GATEWAY,
    port: "port-80",
    owner: { kind: "ListenerSet", namespace: "team", name: "own" },
    section: "web",
    hostname: "a.com",
    protocol: "HTTP",
  };
  const redirect: Rule = {
    origin: { kind: "HTTPRoute", namespace: "team", name: "r", rule: 0, match: 0 },
    match: { headers: [], query: [] },
    action: { type: "redirect", scheme: "https", statusCode: 301, filters: {} },
  };
  const host: PlanItem = {
    type: "host",
    id: "host",
    gateway: GATEWAY,
    listener: http.id,
    hostname: "a.com",
    rules: [redirect],
  };
  const matched = ({ delta }: { delta: PlanDelta }): unknown =>
    delta.upserts.flatMap((item) =>
      item.type === "host" ? item.rules.map(({ match }) => match.headers.length) : [],
    );
  const plan = new InnerPlan(() => 8880);
  expect(matched(plan.apply({ upserts: [...ports, http, host], removes: [] }))).toEqual([1]);
  const https = { ...http, port: "port-443", protocol: "HTTPS" } as const;
  expect(matched(plan.apply({ upserts: [https], removes: [] }))).toEqual([0]);
});

test("guards of rules pass through, and so does their removal", () => {
  const guard: PlanItem = {
    type: "guard",
    id: "guard",
    gateway: GATEWAY,
    policy: { namespace: "apps", name: "policy" },
    check: { type: "addresses", allow: [] },
  };
  const plan = new InnerPlan(() => 8880);
  expect(plan.apply({ upserts: [guard], removes: [] }).delta).toEqual({ upserts: [guard], removes: [] });
  expect(plan.apply({ upserts: [], removes: ["guard"] }).delta).toEqual({ upserts: [], removes: ["guard"] });
});

test("one tenant among thousands costs what the tenant costs", () => {
  const listener = (index: number): ListenerItem => ({
    type: "listener",
    id: `listener-${index}`,
    gateway: GATEWAY,
    port: "port-80",
    owner: { kind: "ListenerSet", namespace: `team-${index}`, name: "own" },
    section: "web",
    hostname: `t${index}.example.com`,
    protocol: "HTTP",
  });
  const port: PlanItem = {
    type: "port",
    id: "port-80",
    gateway: GATEWAY,
    transport: "tcp",
    port: 80,
    protocol: "http",
  };
  const plan = new InnerPlan(() => 8880);
  plan.apply({
    upserts: [port, ...Array.from({ length: 5_000 }, (_, index) => listener(index))],
    removes: [],
  });
  const added = plan.apply({ upserts: [listener(5_000)], removes: [] });
  expect(added.delta.upserts.map(({ id }) => id)).toEqual(["listener-5000"]);
  expect([...added.listeners]).toEqual(["listener-5000"]);
  const removed = plan.apply({ upserts: [], removes: ["listener-17"] });
  expect(removed.delta).toEqual({ upserts: [], removes: ["listener-17"] });
});
