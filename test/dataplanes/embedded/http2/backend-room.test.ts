import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { ask } from "../../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";
import { Sockets } from "../../support/sockets.ts";
import { frame, frameType, headersFrames, u32 } from "../hostile/h2-frames.ts";
import { type RawBackend, rawBackend, setting } from "./raw-backend.ts";

/**
 * Backends that take no streams, or hardly any (RFC 9113, 6.5.2: SETTINGS_MAX_CONCURRENT_STREAMS).
 */

const MAX_CONCURRENT_STREAMS = 3;
const http = port(80);
const shop = listener("shop", http, "shop.example");
let sockets: Sockets;
let plane: PlaneUnderTest;

beforeEach(() => {
  sockets = new Sockets();
});

afterEach(async () => {
  await plane.close();
  await sockets.release();
});

async function start(endpoints: readonly RawBackend[], limits = {}): Promise<void> {
  plane = await PlaneUnderTest.start(
    (options) => createEmbeddedDataPlane({ ...options, workers: 0 }),
    [
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend(
        "b",
        endpoints.map((endpoint) => endpoint.port),
        { protocol: "h2c" },
      ),
    ],
    { limits: { connectTimeoutMs: 500, ...limits } },
  );
}

const status = async (): Promise<number> => (await ask(plane.at(80), { host: "shop.example" })).status;
const answer = (stream: number, socket: Socket): void => {
  socket.write(headersFrames(stream, [[":status", "200"]], true));
};

describe("a backend that takes no streams", () => {
  test("gets one connection, and the client its answer", async () => {
    const none = await rawBackend(sockets, { settings: setting(MAX_CONCURRENT_STREAMS, 0) });
    await start([none]);
    expect(await status()).toBe(503);
    expect(none.connections).toBe(1);
    expect(plane.records.at(-1)).toMatchObject({ reason: "BackendRefused" });
    // The connection is kept: it may have room some day.
    expect(await status()).toBe(503);
    expect(none.connections).toBe(1);
  });

  test("gets a few connections, not one after the other, when it says goodbye at once", async () => {
    const none = await rawBackend(sockets, {
      settings: setting(MAX_CONCURRENT_STREAMS, 0),
      onGreeted: (socket) => {
        socket.end(frame(frameType.goaway, 0, 0, Buffer.concat([u32(0), u32(0)])));
      },
    });
    await start([none]);
    expect(await status()).toBe(503);
    expect(none.connections).toBeLessThanOrEqual(3);
  });

  test("is left for another endpoint that takes streams", async () => {
    const none = await rawBackend(sockets, { settings: setting(MAX_CONCURRENT_STREAMS, 0) });
    const some = await rawBackend(sockets, { onRequest: answer });
    await start([none, some]);
    expect([await status(), await status(), await status()]).toEqual([200, 200, 200]);
  });

  test("serves who waits once it takes streams", async () => {
    const late = await rawBackend(sockets, {
      settings: setting(MAX_CONCURRENT_STREAMS, 0),
      onGreeted: (socket) => {
        setImmediate(() => socket.write(frame(frameType.settings, 0, 0, setting(MAX_CONCURRENT_STREAMS, 1))));
      },
      onRequest: answer,
    });
    await start([late], { connectTimeoutMs: 30_000 });
    expect(await status()).toBe(200);
    expect(late.connections).toBe(1);
  });
});

describe("a backend that takes one stream at a time", () => {
  test("gets a connection for each request, up to a bound; whoever waits is served in turn", async () => {
    const waiting: (() => void)[] = [];
    const one = await rawBackend(sockets, {
      settings: setting(MAX_CONCURRENT_STREAMS, 1),
      onRequest: (stream, socket) => waiting.push(() => answer(stream, socket)),
    });
    await start([one], { http2ConnectionsPerEndpoint: 4, connectTimeoutMs: 30_000 });
    const asking = Array.from({ length: 12 }, () => status());
    for (let served = 0; served < 12; served++) {
      await expect.poll(() => waiting.length, { timeout: 20_000 }).toBeGreaterThan(0);
      waiting.shift()?.();
    }
    expect(await Promise.all(asking)).toEqual(Array.from({ length: 12 }, () => 200));
    expect(one.connections).toBe(4);
  });

  test("never answers, and who waits for room is told so in bounded time", async () => {
    const one = await rawBackend(sockets, { settings: setting(MAX_CONCURRENT_STREAMS, 1) });
    await start([one], { http2ConnectionsPerEndpoint: 1, backendResponseTimeoutMs: 700 });
    const answers = await Promise.all([status(), status(), status()]);
    for (const seen of answers) expect([503, 504]).toContain(seen);
    expect(one.connections).toBeLessThanOrEqual(3);
  });
});
