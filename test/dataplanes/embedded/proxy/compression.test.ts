/** What compressors of the embedded data plane may take, and what becomes of those in the way. */

import { once } from "node:events";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:http2";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { BufferedBytes } from "../../../../src/dataplanes/embedded/limits/buffered-bytes.ts";
import { CompressorBudget } from "../../../../src/dataplanes/embedded/limits/compressor-budget.ts";
import { TenantBudgets } from "../../../../src/dataplanes/embedded/limits/tenant-budgets.ts";
import { chosenAlgorithm, codingName } from "../../../../src/dataplanes/embedded/message/content-coding.ts";
import type { CompressionAlgorithm } from "../../../../src/plan/rule.ts";
import { DEFAULT_TENANT_LIMITS } from "../../../../src/plan/tenant-limits.ts";
import { setStage } from "../../contract/stage.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../../support/plan-builder.ts";
import type { PlaneUnderTest } from "../../support/plane-under-test.ts";
import { seeded } from "../../support/sockets.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const COMPRESSOR = 512 * 1024;
const compression = { algorithms: ["gzip"], minBytes: 10, contentTypes: ["text/html"] } as const;

describe("the choice of a coding", () => {
  const offered = fc.uniqueArray(fc.constantFrom<CompressionAlgorithm>("brotli", "gzip", "zstd"));
  const name = fc.constantFrom("br", "gzip", "zstd", "*", "identity", "deflate", "GZIP", "");
  const weight = fc.constantFrom(
    "",
    ";q=0",
    ";q=0.000",
    ";q=0.5",
    "; q = 1",
    ";q=2",
    ";q=x",
    ";q",
    ";;",
    ";a=b",
  );
  const element = fc.tuple(name, weight).map(([coding, q]) => `${coding}${q}`);
  const accepted = fc.oneof(
    fc.array(element).map((each) => each.join(", ")),
    fc.string(),
  );

  test("is one that is offered, that the client names, and that it does not refuse", () => {
    fc.assert(
      fc.property(accepted, offered, (header, algorithms) => {
        const chosen = chosenAlgorithm(header, algorithms);
        if (chosen === undefined) return;
        expect(algorithms).toContain(chosen);
        const elements = header.split(",").map((each) => each.trim());
        const coding = codingName(chosen);
        expect(elements.some((each) => each.startsWith(coding) || each.startsWith("*"))).toBe(true);
        expect(elements).not.toContain(`${coding};q=0`);
      }),
    );
  });

  test("takes no longer for a header that is all commas or all parameters", () => {
    const started = performance.now();
    for (const text of [",".repeat(60_000), ";".repeat(60_000), "gzip;q=".repeat(9_000), "=".repeat(60_000)])
      chosenAlgorithm(text, ["gzip"]);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

describe("the memory of compressors", () => {
  function budgetOf(bufferedBytes: number): { readonly budgets: TenantBudgets; buffered(): BufferedBytes } {
    const budgets = new TenantBudgets();
    const tenantLimits = { ...DEFAULT_TENANT_LIMITS, bufferedBytes };
    budgets.apply({ upserts: [{ type: "gateway", id: "g", gateway, tenantLimits }, shop], removes: [] });
    const tenant = budgets.of(shop.id);
    if (tenant === undefined) throw new Error("shop is no tenant");
    return { budgets, buffered: () => new BufferedBytes(tenant) };
  }

  test("is half of a tenant's at most, and comes back", () => {
    const { budgets, buffered } = budgetOf(4 * COMPRESSOR);
    const compressors = new CompressorBudget();
    const requests = Array.from({ length: 4 }, buffered);
    const taken = requests.filter((each) => compressors.take(each));
    expect(taken.length).toBe(2);
    expect(budgets.of(shop.id)?.bufferedBytes).toBe(2 * COMPRESSOR);
    expect(budgets.of(shop.id)?.isFull).toBe(false);
    for (const each of taken) compressors.giveBack(each);
    expect(budgets.of(shop.id)?.bufferedBytes).toBe(0);
  });

  test("is bounded for all together, also for the platform", () => {
    const compressors = new CompressorBudget();
    let taken = 0;
    while (taken < 10_000 && compressors.take(undefined)) taken++;
    expect(taken).toBe(256);
    compressors.giveBack(undefined);
    expect(compressors.take(undefined)).toBe(true);
  });
});

describe("a compressed answer", () => {
  const stage = setStage((options) => createEmbeddedDataPlane(options));

  async function start(
    handler: (request: IncomingMessage, response: ServerResponse) => void,
    { bufferedBytes = DEFAULT_TENANT_LIMITS.bufferedBytes, clientStallTimeoutMs = 30_000 } = {},
  ): Promise<PlaneUnderTest> {
    const tenantLimits = { ...DEFAULT_TENANT_LIMITS, bufferedBytes };
    return await stage.start(
      [
        { type: "gateway", id: "gateway", gateway, tenantLimits },
        http,
        shop,
        host(shop, "shop.example", [rule({ action: forwardTo("b", { compression }) })]),
        backend("b", [await stage.backends.http(handler)]),
      ],
      { limits: { clientStallTimeoutMs } },
    );
  }

  async function codingOf(plane: PlaneUnderTest): Promise<string | undefined> {
    const headers = { host: "shop.example", "accept-encoding": "gzip" };
    const sent = request({ port: plane.at(80), headers, agent: false }).on("error", () => {});
    stage.onRelease(() => sent.destroy());
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.headers["content-encoding"];
  }

  test("goes as it is while others of the tenant are compressed, and the tenant is served", async () => {
    const open: ServerResponse[] = [];
    const plane = await start(
      (_request, response) => {
        open.push(response);
        response.writeHead(200, { "content-type": "text/html" }).write("x".repeat(100));
      },
      { bufferedBytes: 4 * COMPRESSOR },
    );
    expect([await codingOf(plane), await codingOf(plane)]).toEqual(["gzip", "gzip"]);
    expect([await codingOf(plane), await codingOf(plane)]).toEqual([undefined, undefined]);
    for (const response of open) response.end();
    await expect.poll(async () => await codingOf(plane)).toBe("gzip");
  });

  test("that nobody takes is cut off, however much of it the backend has sent", async () => {
    const random = seeded(5);
    const noise = Buffer.from(Array.from({ length: 4_000_000 }, () => Math.floor(random() * 256)));
    const plane = await start(
      ({ url = "" }, response) => {
        const length = Number(url.slice(1));
        response.writeHead(200, { "content-type": "text/html" }).end(noise.subarray(0, length));
      },
      { clientStallTimeoutMs: 300 },
    );
    const session = connect(`http://127.0.0.1:${plane.at(80)}`, { settings: { initialWindowSize: 1_000 } });
    stage.onRelease(() => session.destroy());
    for (const length of [10_000, 60_000, 100_000, 150_000, 200_000, 300_000, 4_000_000]) {
      const path = `/${length}`;
      const stream = session.request({
        ...{ ":path": path, ":authority": "shop.example", "accept-encoding": "gzip" },
      });
      const closed = new Promise((resolve) => stream.on("error", resolve));
      await once(stream, "response");
      await closed;
      expect((await plane.record((record) => record.path === path)).bytesSent).toBeLessThan(4_000_000);
    }
  });
});
