import { expect, test } from "vitest";
import type { LoadBalancing } from "../../../src/plan/load-balancing.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const site = host(shop, "shop.example", [rule({ action: forwardTo("b") })]);

/** Which endpoint of a backend gets a request. */
export function describeBalancing(create: CreateDataPlane): void {
  const stage = setStage(create);
  const start = async (
    count: number,
    balancing: LoadBalancing,
  ): Promise<PlaneUnderTest & { readonly endpoints: readonly number[] }> => {
    const endpoints = await Promise.all(
      Array.from({ length: count }, (_, index) => stage.backends.echo(`e${index}`)),
    );
    const plane = await stage.start([http, shop, site, backend("b", endpoints, { balancing })]);
    return Object.assign(plane, { endpoints });
  };
  const servedBy = async (plane: PlaneUnderTest, headers: Record<string, string> = {}): Promise<string> =>
    (await ask(plane.at(80), { host: "shop.example", headers })).seen.backend;
  const reached = async (
    plane: PlaneUnderTest,
    requests: readonly Record<string, string>[],
  ): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const headers of requests) found.push(await servedBy(plane, headers));
    return found;
  };
  const users = Array.from({ length: 40 }, (_, index) => ({ "x-user": `user-${index}` }));

  test.each(["random", "leastRequest", "roundRobin"] as const)("%s reaches every endpoint", async (type) => {
    const plane = await start(3, { type });
    const found = await reached(plane, Array(40).fill({}));
    expect([...new Set(found)].sort()).toEqual(["e0", "e1", "e2"]);
  });

  test("least request leaves an endpoint alone that is busy", async () => {
    const answers: (() => void)[] = [];
    const slow = await stage.backends.http((request, response) => {
      if (request.url === "/slow") answers.push(() => response.end("slow"));
      else response.end(JSON.stringify({ backend: "slow" }));
    });
    const quick = await stage.backends.http((_request, response) => {
      response.end(JSON.stringify({ backend: "quick" }));
    });
    const balancing = { type: "leastRequest" } as const;
    const plane = await stage.start([http, shop, site, backend("b", [slow, quick], { balancing })]);
    const pending: Promise<unknown>[] = [];
    while (answers.length === 0) {
      pending.push(ask(plane.at(80), { host: "shop.example", path: "/slow" }));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    // Both of the two that are drawn may be the busy one: a quarter of the time, not half of it.
    const found = await reached(plane, Array(200).fill({}));
    expect(found.filter((name) => name === "slow").length).toBeLessThan(80);
    for (const answer of answers) answer();
    await Promise.all(pending);
  });

  test("requests with one value of a header reach one endpoint, and all endpoints get some", async () => {
    const plane = await start(4, { type: "hash", key: { type: "header", name: "x-user" } });
    const first = await reached(plane, users);
    expect(await reached(plane, users)).toEqual(first);
    expect([...new Set(first)].sort()).toEqual(["e0", "e1", "e2", "e3"]);
  });

  test("when an endpoint goes, only its own keys move, but for a few", async () => {
    const plane = await start(4, { type: "hash", key: { type: "header", name: "x-user" } });
    const before = await reached(plane, users);
    const balancing = { type: "hash", key: { type: "header", name: "x-user" } } as const;
    const left = plane.endpoints.slice(0, 3);
    await plane.apply({ upserts: [backend("b", left, { balancing })], removes: [] });
    const after = await reached(plane, users);
    expect(after).not.toContain("e3");
    const moved = after.filter((name, index) => name !== before[index] && before[index] !== "e3");
    // Maglev moves some more than a ring would; all of them would be about 30.
    expect(moved.length).toBeLessThan(8);
  });

  test("a cookie decides, wherever it stands among others", async () => {
    const plane = await start(4, { type: "hash", key: { type: "cookie", name: "cart" } });
    const cookies = (before: string): readonly Record<string, string>[] =>
      Array.from({ length: 20 }, (_, index) => ({ cookie: `${before}cart=c${index}` }));
    const first = await reached(plane, cookies(""));
    expect(await reached(plane, cookies("theme=dark; "))).toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(1);
  });

  test("one client reaches one endpoint by its address", async () => {
    const plane = await start(4, { type: "hash", key: { type: "client" } });
    expect(new Set(await reached(plane, Array(10).fill({}))).size).toBe(1);
  });

  test("requests without the header or cookie are served, and by more than one endpoint", async () => {
    for (const type of ["header", "cookie"] as const) {
      const plane = await start(3, { type: "hash", key: { type, name: "absent" } });
      expect(new Set(await reached(plane, Array(40).fill({ cookie: "other=1" }))).size).toBe(3);
    }
  });

  test("one backend's policy does not change how another of the same endpoints is reached", async () => {
    const endpoints = await Promise.all(["e0", "e1", "e2"].map((name) => stage.backends.echo(name)));
    const key = { type: "header", name: "x-user" } as const;
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({ path: "/own", action: forwardTo("b@own") }),
        rule({ path: "/", action: forwardTo("b") }),
      ]),
      backend("b", endpoints),
      backend("b@own", endpoints, { balancing: { type: "hash", key } }),
    ]);
    const at = async (path: string): Promise<number> => {
      const found = new Set<string>();
      for (let count = 0; count < 20; count++) {
        const headers = { "x-user": "one" };
        found.add((await ask(plane.at(80), { host: "shop.example", path, headers })).seen.backend);
      }
      return found.size;
    };
    expect(await at("/own")).toBe(1);
    expect(await at("/")).toBe(3);
  });
}
