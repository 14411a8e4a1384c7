import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { expect, test } from "vitest";
import type { ClientLimits } from "../../../src/plan/limits/client-limits.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

/** By then a limit of a second has had its effect, and those of other ports have not. */
const SOON_MS = 9_000;

/** What a port allows its clients; port 81 has no limits of its own. */
export function describeClientLimits(create: CreateDataPlane): void {
  const stage = setStage(create);

  async function start(clientLimits: ClientLimits): Promise<PlaneUnderTest> {
    const ports = [port(80, "http", { clientLimits }), port(81)];
    const listeners = ports.map((each) => listener(`shop-${each.port}`, each, "shop.example"));
    return stage.start([
      ...ports,
      ...listeners,
      ...listeners.map((each) => host(each, "shop.example", [rule({ action: forwardTo("b") })])),
      backend("b", [await stage.backends.echo("b")]),
    ]);
  }

  function session(plane: PlaneUnderTest, at: number): ClientHttp2Session {
    const opened = connectHttp2(`http://127.0.0.1:${plane.at(at)}`);
    stage.onRelease(() => opened.destroy());
    return opened.on("error", () => {});
  }

  /** 0: the stream was reset. */
  function askHttp2(opened: ClientHttp2Session, headers: OutgoingHttpHeaders): Promise<number> {
    return new Promise((resolve) => {
      const stream = opened.request({ ":authority": "shop.example", ...headers });
      stream.on("response", (head) => resolve(head[":status"] ?? 0));
      stream.on("error", () => {}).on("close", () => resolve(0));
      stream.resume();
    });
  }

  const fields = (count: number, bytes: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-field-${at}`, "v".repeat(bytes)]));

  test.each([
    ["larger", { headerBytes: 4_096 }, fields(2, 1_000), fields(8, 1_000)],
    ["of more fields", { headerCount: 20 }, fields(10, 1), fields(40, 1)],
  ] as const)("a header %s than its port allows is refused", async (_, limits, within, beyond) => {
    const plane = await start(limits);
    const status = async (at: number, headers: Record<string, string>): Promise<number> =>
      (await ask(plane.at(at), { host: "shop.example", headers })).status;
    expect(await status(80, within)).toBe(200);
    expect(await status(80, beyond)).toBe(431);
    expect(await status(81, beyond)).toBe(200);
    expect(await askHttp2(session(plane, 80), within)).toBe(200);
    expect(await askHttp2(session(plane, 80), beyond)).not.toBe(200);
    expect(await askHttp2(session(plane, 81), beyond)).toBe(200);
  });

  test("a header that does not come to its end in time ends the connection", async () => {
    const plane = await start({ headerTimeoutMs: 1_000 });
    const [limited, other] = await Promise.all([80, 81].map((at) => stage.sockets.connect(plane.at(at))));
    const begun = performance.now();
    for (const socket of [limited, other]) socket?.write("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Fie");
    await new Promise((resolve) => limited?.once("end", resolve).once("close", resolve).resume());
    expect(performance.now() - begun).toBeLessThan(SOON_MS);
    expect(other?.readableEnded || other?.destroyed).toBe(false);
    const answer = new Promise((resolve) => other?.once("data", resolve));
    other?.write("ld: x\r\n\r\n");
    expect(String(await answer)).toMatch(/^HTTP\/1.1 200/);
  });

  test("a connection without a request is closed in time, in both versions of HTTP", async () => {
    const plane = await start({ idleMs: 1_000 });
    const [limited, other] = await Promise.all([80, 81].map((at) => stage.sockets.connect(plane.at(at))));
    const [limited2, other2] = [session(plane, 80), session(plane, 81)];
    for (const socket of [limited, other]) {
      socket?.write("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
      socket?.resume();
    }
    expect(await askHttp2(limited2, {})).toBe(200);
    expect(await askHttp2(other2, {})).toBe(200);
    const begun = performance.now();
    await Promise.all([
      new Promise((resolve) => limited?.once("end", resolve).once("close", resolve)),
      // Envoy announces the end, and leaves five seconds for streams that are on their way.
      new Promise((resolve) => limited2.once("close", resolve)),
    ]);
    expect(performance.now() - begun).toBeLessThan(SOON_MS);
    expect([other?.readableEnded, other2.closed]).toEqual([false, false]);
  });

  test("an HTTP/2 client is told how many requests it may have at a time", async () => {
    const plane = await start({ concurrentStreams: 5 });
    const settings = async (at: number): Promise<number | undefined> =>
      (await once(session(plane, at), "remoteSettings"))[0].maxConcurrentStreams;
    expect(await settings(80)).toBe(5);
    expect(await settings(81)).toBe(128);
  });

  test("changed limits hold for new connections", async () => {
    const plane = await start({ headerCount: 20 });
    const status = async (): Promise<number> =>
      (await ask(plane.at(80), { host: "shop.example", headers: fields(40, 1) })).status;
    expect(await status()).toBe(431);
    await plane.apply({ upserts: [port(80, "http", { clientLimits: { headerCount: 60 } })], removes: [] });
    await expect.poll(status, { timeout: 10_000 }).toBe(200);
    await plane.apply({ upserts: [port(80)], removes: [] });
    await expect.poll(status, { timeout: 10_000 }).toBe(200);
  });
}
