import type { RequestListener } from "node:http";
import { performance } from "node:perf_hooks";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { RetryBudget } from "../../../../src/dataplanes/embedded/upstream/retry-budget.ts";
import {
  MAX_RETRY_ATTEMPTS,
  MAX_RETRY_TIME_MS,
  MIN_RETRY_BACKOFF_MS,
  RETRY_BUDGET_PERCENT,
} from "../../../../src/plan/retry-limits.ts";
import type { ForwardAction } from "../../../../src/plan/rule.ts";
import { ask, Backends } from "../../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";
import { Sockets } from "../../support/sockets.ts";

/** What a route that asks for retries without end gets, and what it cannot do to others. */

const http = port(80);
const shop = listener("shop", http, "shop.example");
const endless = forwardTo("b", { retry: { attempts: 1_000_000, codes: [503], backoffMs: 0 } });
const route = host(shop, "shop.example", [rule({ action: endless })]);
let backends: Backends;
let sockets: Sockets;
let plane: PlaneUnderTest;

beforeEach(() => {
  backends = new Backends();
  sockets = new Sockets();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await plane.close();
  await sockets.release();
  await backends.release();
});

async function start(handler: RequestListener, action: ForwardAction = endless): Promise<void> {
  const served = action === endless ? route : host(shop, "shop.example", [rule({ action })]);
  plane = await PlaneUnderTest.start(
    (options) => createEmbeddedDataPlane({ ...options, workers: 0 }),
    [http, shop, served, backend("b", [await backends.http(handler)])],
  );
}

describe("retries without end", () => {
  test("are as many as are granted", async () => {
    let calls = 0;
    await start((_request, response) => {
      calls++;
      response.writeHead(503).end();
    });
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(503);
    expect(calls).toBe(1 + MAX_RETRY_ATTEMPTS);
  });

  test("have a pause before each of them, even where the route asks for none", async () => {
    const times: number[] = [];
    await start((_request, response) => {
      times.push(performance.now());
      response.writeHead(503).end();
    });
    await ask(plane.at(80), { host: "shop.example" });
    const pauses = times.slice(1).map((time, at) => time - (times[at] ?? 0));
    expect(pauses.length).toBe(MAX_RETRY_ATTEMPTS);
    // A timer may be early by less than a millisecond.
    expect(Math.min(...pauses)).toBeGreaterThan(MIN_RETRY_BACKOFF_MS - 1);
  });

  test("end with the time for all of them: none that would begin later is waited for", async () => {
    let calls = 0;
    const retry = { attempts: 5, codes: [503], backoffMs: MAX_RETRY_TIME_MS + 1_000 };
    await start(
      (_request, response) => {
        calls++;
        response.writeHead(503).end();
      },
      forwardTo("b", { retry }),
    );
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(503);
    expect(calls).toBe(1);
  });

  test.each([
    ["within the time for retries", MAX_RETRY_TIME_MS / 2, 3],
    ["after the time for retries", MAX_RETRY_TIME_MS + 1, 1],
  ])("count from the beginning of the request: a first answer %s", async (_name, lateMs, attempts) => {
    let calls = 0;
    const retry = { attempts: 2, codes: [503], backoffMs: 0 };
    // Without the route's own timeouts the backend would be too late as well.
    const action = forwardTo("b", { retry, timeouts: { requestMs: 0 } });
    await start((_request, response) => {
      if (++calls === 1) {
        const now = performance.now.bind(performance);
        vi.spyOn(performance, "now").mockImplementation(() => now() + lateMs);
      }
      response.writeHead(503).end();
    }, action);
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(503);
    expect(calls).toBe(attempts);
  });

  test.each(["leaves", "ends its side"])("stop when the client %s", async (how) => {
    let calls = 0;
    const asked = Promise.withResolvers<() => void>();
    await start((_request, response) => {
      calls++;
      asked.resolve(() => response.writeHead(503).end());
    });
    const client = await sockets.connect(plane.at(80));
    client.write("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    const answer = await asked.promise;
    client.resume();
    if (how === "leaves") client.resetAndDestroy();
    else client.end();
    // The proxy has read the client's end once a later connection has had its answer.
    await ask(plane.at(80), { host: "elsewhere.example" });
    answer();
    await plane.record(({ authority }) => authority === "shop.example");
    expect(calls).toBe(1);
  });

  test("stop when the rule is gone: the client hears what a new request would hear", async () => {
    let calls = 0;
    await start(async (_request, response) => {
      calls++;
      if (calls === 2) await plane.apply({ upserts: [], removes: [route.id] });
      response.writeHead(503).end();
    });
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(404);
    expect(calls).toBe(2);
  });

  test("go on when something else of the route's host changes", async () => {
    let calls = 0;
    await start(async (_request, response) => {
      calls++;
      const rules = [rule({ path: "/other", action: endless }), rule({ action: endless })];
      if (calls === 2) await plane.apply({ upserts: [{ ...route, rules }], removes: [] });
      response.writeHead(calls < 4 ? 503 : 200).end();
    });
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
    expect(calls).toBe(4);
  });

  test("of many requests at a time have a budget, so that a backend in trouble is not asked eleven times as much", async () => {
    const clients = 100;
    let calls = 0;
    const allAsked = Promise.withResolvers<void>();
    await start(async (_request, response) => {
      if (++calls === clients) allAsked.resolve();
      await allAsked.promise;
      response.writeHead(503).end();
    });
    const asking = Array.from({ length: clients }, () => ask(plane.at(80), { host: "shop.example" }));
    for (const { status } of await Promise.all(asking)) expect(status).toBe(503);
    const retrying = (clients * RETRY_BUDGET_PERCENT) / 100;
    expect(calls).toBeGreaterThan(clients);
    expect(calls).toBeLessThanOrEqual(clients + 2 * retrying * MAX_RETRY_ATTEMPTS);
  });
});

describe("the budget of a backend", () => {
  test("is a fifth of its requests in flight, and three in any case", () => {
    const budget = new RetryBudget();
    const grant = (): number => {
      let granted = 0;
      while (budget.take()) granted++;
      for (let i = 0; i < granted; i++) budget.giveBack();
      return granted;
    };
    budget.begin();
    expect(grant()).toBe(3);
    for (let i = 1; i < 100; i++) budget.begin();
    expect(grant()).toBe(20);
    for (let i = 0; i < 50; i++) budget.end();
    expect(grant()).toBe(10);
  });

  test("is asked for again after each attempt, and given back at the end", () => {
    const budget = new RetryBudget();
    budget.begin();
    expect([budget.take(), budget.take(), budget.take(), budget.take()]).toEqual([true, true, true, false]);
    budget.giveBack();
    expect(budget.take()).toBe(true);
    expect(budget.idle).toBe(false);
    for (let i = 0; i < 3; i++) budget.giveBack();
    budget.end();
    expect(budget.idle).toBe(true);
  });
});
