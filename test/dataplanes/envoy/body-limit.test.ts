/** Limits of bodies on a real Envoy: where its neighbour counts, and what happens without it. */

import { unlinkSync } from "node:fs";
import { request } from "node:http";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { atMost } from "../../../src/dataplanes/envoy/compile/routes/body-limit.ts";
import type { EnvoyDataPlane } from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { setStage } from "../contract/stage.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, gateway, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { PlaneUnderTest } from "../support/plane-under-test.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const stage = setStage((options) => createEnvoy(options));

test("the expression for announced lengths matches the numbers up to the limit and no others", () => {
  const limit = fc.oneof(
    fc.nat({ max: 1_200 }),
    fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    fc.constantFrom(0, 9, 10, 99, 100, 109, 1_000_000, 1_099_511_627_776),
  );
  const near = fc.oneof(fc.integer({ min: -120, max: 120 }), fc.integer());
  fc.assert(
    fc.property(limit, near, fc.nat({ max: 3 }), (most, distance, zeros) => {
      const length = Math.max(0, Math.min(most + distance, Number.MAX_SAFE_INTEGER));
      const written = `${"0".repeat(zeros)}${length}`;
      expect(new RegExp(`^(?:${atMost(most)})$`).test(written)).toBe(length <= most);
    }),
    { numRuns: 5_000 },
  );
  for (const odd of ["", "-1", "+1", "1,1", "1 ", "0x1", "1e0"])
    expect(new RegExp(`^(?:${atMost(5)})$`).test(odd), odd).toBe(false);
});

async function serving(maxBytes: number): Promise<PlaneUnderTest> {
  return stage.start([
    http,
    shop,
    guard("g", { type: "requestBody", maxBytes }),
    host(shop, "shop.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
    backend("b", [await stage.backends.echo("b")]),
  ]);
}

const chunked = { "transfer-encoding": "chunked" };

test("without the program that counts, a body of unknown length is not served, and others are", async () => {
  const plane = await serving(10);
  const post = (headers: Record<string, string>): Promise<number> =>
    ask(plane.at(80), { host: "shop.example", method: "POST", body: "12345", headers }).then(
      ({ status }) => status,
    );
  expect(await post(chunked)).toBe(200);
  const envoy = plane.plane as EnvoyDataPlane;
  const clusters = (await envoy.process(gateway)?.admin("GET", "/clusters")) ?? "";
  unlinkSync(/^mergeway::(\/\S+?)::/m.exec(clusters)?.[1] ?? "");
  envoy.disconnect();
  expect(await post(chunked)).toBeGreaterThanOrEqual(500);
  expect(await post({ "content-length": "5" })).toBe(200);
  expect(await post({ "content-length": "11" })).toBe(413);
  expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
});

test("many bodies of unknown length are counted at the same time", async () => {
  const plane = await serving(1_000_000);
  const uploads = Array.from({ length: 1_500 }, () => {
    const sent = request({
      host: "127.0.0.1",
      port: plane.at(80),
      method: "POST",
      headers: { host: "shop.example", ...chunked },
      agent: false,
    });
    sent.write("x");
    const status = new Promise<number>((resolve) => {
      sent.on("response", (response) => resolve(response.resume().statusCode ?? 0));
      sent.on("error", () => resolve(0));
    });
    return { sent, status };
  });
  const stats = async (): Promise<string> =>
    (await (plane.plane as EnvoyDataPlane).process(gateway)?.admin("GET", "/stats?filter=ext_proc")) ?? "";
  await expect.poll(stats, { timeout: 30_000 }).toMatch(/streams_started: 1500\b/);
  for (const { sent } of uploads) sent.end("y");
  const statuses = await Promise.all(uploads.map(({ status }) => status));
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
}, 90_000);
