import { expect, test } from "vitest";
import { ask } from "../support/http-peers.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);

export function describeHttp(create: CreateDataPlane): void {
  const stage = setStage(create);

  test("forwards to the backend of the rule, with the request as it was", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ path: "/", action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const answer = await ask(plane.at(80), {
      host: "shop.example",
      path: "/a%20b?x=1&x=2",
      method: "POST",
      headers: { "x-custom": ["1", "2"], "content-type": "text/plain" },
      body: "hello",
    });
    expect(answer.status).toBe(200);
    expect(answer.seen).toMatchObject({ backend: "b", method: "POST", url: "/a%20b?x=1&x=2", body: "hello" });
    expect(answer.seen.headers).toMatchObject({
      host: "shop.example",
      "x-custom": "1, 2",
      "content-length": "5",
    });
  });

  test("tells the backend about the client and believes nothing that the client says about itself", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const { seen } = await ask(plane.at(80), {
      host: "shop.example:80",
      headers: {
        "x-forwarded-for": "203.0.113.9",
        "x-forwarded-proto": "https",
        "x-real-ip": "203.0.113.9",
        forwarded: "for=203.0.113.9",
        connection: "close, x-hop",
        "x-hop": "secret",
        "proxy-authorization": "Basic x",
      },
    });
    expect(seen.headers).toMatchObject({
      host: "shop.example:80",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": "shop.example:80",
      "x-forwarded-port": "80",
    });
    expect(seen.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    for (const name of ["forwarded", "x-real-ip", "x-hop", "proxy-authorization"]) {
      expect(seen.headers).not.toHaveProperty(name);
    }
  });

  test("believes proxies in front of it as far as it is told to", async () => {
    const shop = listener("shop", http, "shop.example");
    const items = [
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ];
    const plane = await stage.start(items, { trustedHops: 1 });
    const { seen } = await ask(plane.at(80), {
      host: "shop.example",
      headers: { "x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https", "x-request-id": "mine-1" },
    });
    expect(seen.headers).toMatchObject({
      "x-forwarded-for": expect.stringMatching(/^203\.0\.113\.9, ?127\.0\.0\.1$/),
      "x-forwarded-proto": "https",
      "x-forwarded-host": "shop.example",
      "x-request-id": "mine-1",
    });
  });

  test("keeps listeners apart: 404 for an unknown host, a missing rule, and never a wider listener's rule", async () => {
    const wide = listener("l-wide", http, "*.example");
    const exact = listener("l-exact", http, "a.example");
    const plane = await stage.start([
      http,
      wide,
      exact,
      host(wide, "*.example", [rule({ path: "/", action: forwardTo("wide") })]),
      host(exact, "a.example", [rule({ path: "/only", action: forwardTo("exact") })]),
      backend("wide", [await stage.backends.echo("wide")]),
      backend("exact", [await stage.backends.echo("exact")]),
    ]);
    const at = plane.at(80);
    expect((await ask(at, { host: "b.example" })).seen.backend).toBe("wide");
    expect((await ask(at, { host: "A.Example.", path: "/only/x" })).seen.backend).toBe("exact");
    expect((await ask(at, { host: "a.example", path: "/other" })).status).toBe(404);
    expect((await ask(at, { host: "elsewhere.test" })).status).toBe(404);
    const record = await plane.record(({ authority }) => authority === "elsewhere.test");
    expect(record).toMatchObject({ status: 404, reason: "NoListener" });
    expect(record).not.toHaveProperty("hostname");
  });

  test("redirects", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({
          path: "/old",
          action: {
            type: "redirect",
            scheme: "https",
            statusCode: 301,
            path: { type: "prefix", value: "/new" },
            filters: { responseHeaders: [{ op: "set", name: "x-why", value: "moved" }] },
          },
        }),
      ]),
    ]);
    const answer = await ask(plane.at(80), { host: "shop.example", path: "/old/page?q=1" });
    expect(answer.status).toBe(301);
    expect(answer.headers.location).toBe("https://shop.example/new/page?q=1");
    expect(answer.headers["x-why"]).toBe("moved");
  });

  test("answers for rules and backends that cannot be served", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({ path: "/respond", action: { type: "respond", status: 500, reason: "no such Service" } }),
        rule({ path: "/invalid", action: forwardTo([{ weight: 1, filters: {} }]) }),
        rule({ path: "/nothing", action: forwardTo([]) }),
        rule({ path: "/zero", action: forwardTo([{ backend: "b", weight: 0, filters: {} }]) }),
        rule({ path: "/empty", action: forwardTo("empty") }),
        rule({ path: "/refused", action: forwardTo("refused") }),
        rule({ path: "/closed", action: forwardTo("closed") }),
      ]),
      backend("b", [await stage.backends.echo("b")]),
      backend("empty", []),
      backend("refused", [await stage.backends.echo("refused")], { refused: "no such CA" }),
      backend("closed", [await lastingPort()]),
    ]);
    const statusOf = async (path: string): Promise<number> =>
      (await ask(plane.at(80), { host: "shop.example", path })).status;
    expect(await statusOf("/respond")).toBe(500);
    expect(await statusOf("/invalid")).toBe(500);
    expect(await statusOf("/nothing")).toBe(500);
    expect(await statusOf("/zero")).toBe(500);
    expect(await statusOf("/empty")).toBe(503);
    expect(await statusOf("/refused")).toBe(500);
    expect(await statusOf("/closed")).toBe(503);
    expect(await plane.record(({ path }) => path === "/closed")).toMatchObject({
      reason: "BackendUnreachable",
    });
  });

  test("divides requests by weight, and an invalid reference keeps its share", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({
          action: forwardTo([
            { backend: "a", weight: 3, filters: {} },
            { backend: "b", weight: 1, filters: {} },
            { weight: 1, filters: {} },
          ]),
        }),
      ]),
      backend("a", [await stage.backends.echo("a")]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const counts = new Map<string, number>();
    const all = Array.from({ length: 500 }, async () => {
      const answer = await ask(plane.at(80), { host: "shop.example" });
      const name = answer.status === 200 ? answer.seen.backend : String(answer.status);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    });
    await Promise.all(all);
    // Six standard deviations around 300, 100 and 100.
    expect(counts.get("a")).toBeGreaterThan(230);
    expect(counts.get("a")).toBeLessThan(370);
    expect(counts.get("b")).toBeGreaterThan(45);
    expect(counts.get("500")).toBeGreaterThan(45);
    expect(counts.size).toBe(3);
  });

  test("goes on to the next endpoint when one cannot be reached", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await lastingPort(), await stage.backends.echo("b")]),
    ]);
    for (let round = 0; round < 4; round++) {
      const answer = await ask(plane.at(80), { host: "shop.example", method: "POST", body: "kept" });
      expect(answer.seen.body).toBe("kept");
    }
  });

  test("a port that cannot be bound is its listeners' trouble only, and is taken when it becomes free", async () => {
    const taken = await stage.sockets.serve(() => {});
    const blocked = port(taken);
    const shop = listener("shop", http, "shop.example");
    const other = listener("other", blocked, "other.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const rules = [rule({ action: forwardTo("b") })];
    await plane.apply({ upserts: [blocked, other, host(other, "other.example", rules)], removes: [] });
    expect(plane.report(blocked.id)).toMatchObject({ state: "rejected", reason: "PortUnavailable" });
    expect(plane.report("other")).toMatchObject({ state: "rejected", reason: "PortUnavailable" });
    expect(plane.report("other")?.message).toContain(`port ${taken}`);
    expect(plane.report("shop")).toEqual({ id: "shop", state: "programmed" });
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
    await stage.sockets.release();
    await plane.until(() => plane.report("other")?.state === "programmed");
    expect((await ask(taken, { host: "other.example" })).seen.backend).toBe("b");

    await plane.apply({ upserts: [{ ...port(70_000), id: "no-port" }], removes: [] });
    expect(plane.report("no-port")).toMatchObject({ state: "rejected", reason: "PortUnavailable" });
  });
}
