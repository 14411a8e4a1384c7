import { expect, test } from "vitest";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

/** How often a request is sent if its route says nothing about retries. */
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
}
