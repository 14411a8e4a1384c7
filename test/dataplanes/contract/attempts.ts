import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { MIN_CONCURRENT_RETRIES, RETRY_BUDGET_PERCENT } from "../../../src/plan/retry-limits.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

const retrying = host(shop, "shop.example", [
  rule({ action: forwardTo("b", { retry: { attempts: 1, codes: [503], backoffMs: 10 } }) }),
]);

/** How often a request is sent if its route says nothing about it, and how often at most. */
export function describeAttempts(create: CreateDataPlane): void {
  const stage = setStage(create);

  test("a safe request that meets a connection at its end is sent again, another is not", async () => {
    const requests: string[] = [];
    const at = await stage.sockets.serve((socket) => {
      let served = false;
      socket.on("data", (bytes) => {
        const [method = ""] = String(bytes).split(" ", 1);
        requests.push(method);
        if (served) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        served = true;
      });
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
    const statusAfterReuse = async (method: string): Promise<number> => {
      // Kept alive until the next request.
      expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
      requests.length = 0;
      return (await ask(plane.at(80), { host: "shop.example", method })).status;
    };
    expect(await statusAfterReuse("GET")).toBe(200);
    expect(requests).toEqual(["GET", "GET"]);
    // That connection has served once, the next request ends it.
    expect((await ask(plane.at(80), { host: "shop.example", method: "POST" })).status).toBe(502);
    expect(requests).toEqual(["GET", "GET", "POST"]);
    expect(await statusAfterReuse("POST")).toBe(502);
    expect(requests).toEqual(["POST"]);
  });

  test("an attempt that takes too long is not repeated unless the route says so", async () => {
    let attempts = 0;
    const at = await stage.backends.http(() => {
      attempts++;
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b", { timeouts: { backendRequestMs: 100 } }) })]),
      backend("b", [at]),
    ]);
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(504);
    expect(attempts).toBe(1);
  });

  test("a route whose timeouts are off, or longer than any other limit, is served", async () => {
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({ path: "/off", action: forwardTo("b", { timeouts: { unbounded: true } }) }),
        rule({ path: "/long", action: forwardTo("b", { timeouts: { requestMs: 86_400_000 } }) }),
      ]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    for (const path of ["/off", "/long"]) {
      expect((await ask(plane.at(80), { host: "shop.example", path })).seen.url).toBe(path);
    }
  });

  test("what makes a data plane send again reaches neither backends nor mirrors", async () => {
    const seen: string[] = [];
    const at = await stage.backends.http(({ rawHeaders }, response) => {
      seen.push(...rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
      response.end();
    });
    const mirrors = [{ backend: "b", numerator: 1, denominator: 1 }];
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b", { filters: { mirrors } }) })]),
      backend("b", [at]),
    ]);
    await ask(plane.at(80), { host: "shop.example" });
    await expect.poll(() => seen.filter((name) => name === "host").length).toBe(2);
    expect(seen.filter((name) => /^x-(?:envoy-retry|envoy-max|mergeway)-/.test(name))).toEqual([]);
  });

  test("of many requests to a failing backend, a fifth at most is retried at a time", async () => {
    const requests = 30;
    let firsts = 0;
    const begun: ServerResponse[] = [];
    const retried: ServerResponse[] = [];
    const at = await stage.backends.http((_request, response) => {
      if (firsts === requests) {
        retried.push(response);
        return;
      }
      firsts++;
      begun.push(response);
      // All at once, when all of them are in flight.
      if (firsts === requests) for (const each of begun) each.writeHead(503).end();
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
    await plane.apply({ upserts: [retrying], removes: [] });
    const statuses: number[] = [];
    const asked = Array.from({ length: requests }, async () => {
      statuses.push((await ask(plane.at(80), { host: "shop.example" })).status);
    });
    await expect.poll(() => statuses.length + retried.length, { timeout: 20_000 }).toBe(requests);
    const retries = retried.length;
    for (const each of retried) each.end();
    await Promise.all(asked);
    expect(retries).toBeGreaterThanOrEqual(MIN_CONCURRENT_RETRIES);
    expect(retries).toBeLessThanOrEqual((requests * RETRY_BUDGET_PERCENT) / 100);
    expect(statuses.filter((status) => status === 503)).toHaveLength(requests - retries);
  });

  test("however many requests meet an endpoint that is gone, they go on to the next one", async () => {
    const requests = 30;
    const begun: ServerResponse[] = [];
    const at = await stage.backends.http((_request, response) => {
      begun.push(response);
      if (begun.length === requests) for (const each of begun) each.end();
    });
    const plane = await stage.start([http, shop, retrying, backend("b", [9, at])]);
    const once = host(shop, "shop.example", [rule({ action: forwardTo("b") })]);
    await plane.apply({ upserts: [once], removes: [] });
    const asked = Array.from({ length: requests }, () => ask(plane.at(80), { host: "shop.example" }));
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(requests).fill(200));
  });
}
