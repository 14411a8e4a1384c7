import { once } from "node:events";
import { Agent, request } from "node:http";
import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { GuardCheck } from "../../../../src/plan/guard.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";
import { setStage } from "../../contract/stage.ts";
import { answerOf, ask } from "../../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";

const HOUR = 3_600_000;
const http = port(80);
const shop = listener("shop", http, "shop.example");

/** What the contract does not say of every data plane. */
describe("guards of the embedded data plane", () => {
  const stage = setStage((options) => createEmbeddedDataPlane({ ...options, workers: 0 }));
  const items = async (check: GuardCheck): Promise<PlanItem[]> => [
    http,
    shop,
    guard("g", check),
    host(shop, "shop.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
    backend("b", [await stage.backends.echo("b")]),
  ];

  test("the access log says why a request was refused, and by which route", async () => {
    const plane = await stage.start(await items({ type: "addresses", deny: ["127.0.0.0/8"] }));
    const reasonOf = async (status: number): Promise<unknown> => {
      expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(status);
      return await plane.record((record) => record.status === status);
    };
    const route = { kind: "HTTPRoute", namespace: "apps", name: "route" };
    expect(await reasonOf(403)).toMatchObject({ reason: "AddressDenied", route });
    await plane.apply({
      upserts: [
        guard("g", { type: "rateLimit", requests: 0, periodMs: 90_000, burst: 5, key: { type: "all" } }),
      ],
      removes: [],
    });
    expect(await reasonOf(429)).toMatchObject({ reason: "RateLimited", route });
    await plane.apply({ upserts: [guard("g", { type: "addresses", allow: ["nonsense"] })], removes: [] });
    expect(await reasonOf(500)).toMatchObject({ reason: "PolicyUnavailable", route });
  });

  test("Retry-After is in whole seconds until the next token, and a limit of nothing lets nothing pass", async () => {
    const of = (requests: number, periodMs: number, burst: number): GuardCheck => ({
      type: "rateLimit",
      requests,
      periodMs,
      burst,
      key: { type: "all" },
    });
    const plane = await stage.start(await items(of(1, 100_000, 1)));
    const retryAfter = async (): Promise<number> => {
      const answer = await ask(plane.at(80), { host: "shop.example" });
      expect(answer.status).toBe(429);
      return Number(answer.headers["retry-after"]);
    };
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
    expect(await retryAfter()).toBeGreaterThan(90);
    expect(await retryAfter()).toBeLessThanOrEqual(100);
    await plane.apply({ upserts: [guard("g", of(0, 90_000, 5))], removes: [] });
    expect(await retryAfter()).toBe(90);
    await plane.apply({ upserts: [guard("g", of(5, 90_000, 0))], removes: [] });
    expect(await retryAfter()).toBe(90);
  });

  test("the connection of a refused request with a body goes on", async () => {
    const plane = await stage.start([
      ...(await items({ type: "addresses", deny: ["127.0.0.0/8"] })),
      host(shop, "shop.example", [
        rule({ path: "/closed", action: forwardTo("b"), guards: ["g"] }),
        rule({ path: "/", action: forwardTo("b") }),
      ]),
    ]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    stage.onRelease(() => agent.destroy());
    const send = async (path: string): Promise<{ status: number; port: number | undefined }> => {
      const sent = request({
        host: "127.0.0.1",
        port: plane.at(80),
        path,
        method: "POST",
        agent,
        headers: { host: "shop.example" },
      });
      sent.end("x".repeat(50_000));
      const [response] = (await once(sent, "response")) as [Parameters<typeof answerOf>[0]];
      const { localPort } = response.socket;
      return { status: (await answerOf(response)).status, port: localPort };
    };
    const refused = await send("/closed");
    const served = await send("/open");
    expect([refused.status, served.status]).toEqual([403, 200]);
    expect(served.port).toBe(refused.port);
  });

  test("ten thousand ranges on a path to a backend, and a list that grows while it is served", async () => {
    const ranges = Array.from(
      { length: 10_000 },
      (_, index) => `10.${index >> 8}.${index & 255}.${index % 7}/${index % 2 === 0 ? 32 : 30}`,
    );
    const plane = await stage.start(await items({ type: "addresses", allow: ranges }));
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(403);
    await plane.apply({
      upserts: [guard("g", { type: "addresses", allow: [...ranges, "127.0.0.1/32"] })],
      removes: [],
    });
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
  });

  test("threads share one bucket: exactly its burst passes, whichever of them is asked", async () => {
    const burst = 40;
    const served: number[] = [];
    const plane = await PlaneUnderTest.start(
      (options) => createEmbeddedDataPlane({ ...options, workers: 2 }),
      await items({ type: "rateLimit", requests: 1, periodMs: HOUR, burst, key: { type: "client" } }),
    );
    stage.onRelease(() => plane.close());
    const asking = Array.from({ length: 20 }, async () => {
      for (let round = 0; round < 5; round++) {
        // Each on a connection of its own: the kernel divides them among the threads.
        served.push((await ask(plane.at(80), { host: "shop.example" })).status);
      }
    });
    await Promise.all(asking);
    expect(served.filter((status) => status === 200)).toHaveLength(burst);
    expect(served.filter((status) => status === 429)).toHaveLength(100 - burst);
  });
});
