import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { ask, textOf } from "../http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../plan-builder.ts";
import type { CreateDataPlane, PlaneOptions, PlaneUnderTest } from "../plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

/** Clients that are slow, greedy or rude get a clear answer; the others do not notice them. */
export function describeLimits(create: CreateDataPlane): void {
  const stage = setStage(create);
  const startEcho = async (limits: PlaneOptions["limits"]): Promise<PlaneUnderTest> =>
    stage.start(
      [
        http,
        shop,
        host(shop, "shop.example", [rule({ path: "/", action: forwardTo("b") })]),
        backend("b", [await stage.backends.echo("b")]),
      ],
      { limits: limits ?? {} },
    );
  const open = async (at: number, text: string): Promise<Socket> => {
    const socket = await stage.sockets.connect(at);
    socket.write(text);
    return socket;
  };

  test("headers that are too long or too many: 431", async () => {
    const plane = await startEcho({ headerBytes: 8 * 1024, headerCount: 20 });
    const long = await ask(plane.at(80), {
      host: "shop.example",
      headers: { "x-long": "x".repeat(16 * 1024) },
    });
    expect(long.status).toBe(431);
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`x-${index}`, "1"]));
    expect((await ask(plane.at(80), { host: "shop.example", headers: many })).status).toBe(431);
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
  });

  test("a header of a megabyte is not read to its end", async () => {
    const plane = await startEcho({});
    const socket = await open(plane.at(80), "GET / HTTP/1.1\r\nHost: shop.example\r\nX-Long: ");
    socket.on("error", () => {});
    const answer = textOf(socket).catch(() => "reset");
    for (let sent = 0; sent < 1024 && !socket.destroyed; sent++) {
      if (!socket.write("x".repeat(1024)))
        await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
    }
    expect(await answer).toMatch(/^HTTP\/1\.1 431 |^reset$/);
  });

  test("a body longer than the limit: 413, whether or not it says so", async () => {
    const plane = await startEcho({ bodyBytes: 1_000 });
    const at = plane.at(80);
    expect((await ask(at, { host: "shop.example", method: "POST", body: "x".repeat(1_000) })).status).toBe(
      200,
    );
    expect((await ask(at, { host: "shop.example", method: "POST", body: "x".repeat(1_001) })).status).toBe(
      413,
    );
    const chunked = { "transfer-encoding": "chunked" };
    const unsaid = await ask(at, {
      host: "shop.example",
      method: "POST",
      headers: chunked,
      body: "x".repeat(1_001),
    });
    expect(unsaid.status).toBe(413);
  });

  test("a body that is refused at once does not take the answer away from a client that goes on sending", async () => {
    const plane = await startEcho({ bodyBytes: 1_000 });
    const socket = await open(
      plane.at(80),
      "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5000000\r\n\r\n",
    );
    const answer = once(socket, "data");
    const block = "x".repeat(50_000);
    for (let sent = 0; sent < 100; sent++) if (!socket.write(block)) await once(socket, "drain");
    expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 413 .*connection: close/is);
    expect(await plane.record(({ status }) => status === 413)).toMatchObject({ reason: "Refused" });
  });

  test("a header or a body that comes too slowly: 408", async () => {
    const plane = await startEcho({ headerTimeoutMs: 300, bodyIdleTimeoutMs: 300 });
    const header = await open(plane.at(80), "GET / HTTP/1.1\r\nHost: shop");
    const body = await open(
      plane.at(80),
      "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\nx",
    );
    expect(await textOf(header)).toMatch(/^HTTP\/1\.1 408 /);
    expect(await textOf(body)).toMatch(/^HTTP\/1\.1 408 /);
  });

  test("connections on which nobody asks are closed", async () => {
    const plane = await startEcho({ headerTimeoutMs: 300, keepAliveTimeoutMs: 300 });
    const silent = await stage.sockets.connect(plane.at(80));
    const idle = await open(plane.at(80), "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    expect(await textOf(silent)).toBe("");
    expect(await textOf(idle)).toMatch(/^HTTP\/1\.1 200 /);
    const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
    await once(session, "close");
  });

  test("an answer that nobody takes is cut off", async () => {
    const endless = await stage.backends.http((_request, response) => {
      const more = (): void => {
        while (response.write(Buffer.alloc(64 * 1024)));
        response.once("drain", more);
      };
      more();
    });
    const plane = await stage.start(
      [http, shop, host(shop, "shop.example", [rule({ action: forwardTo("b") })]), backend("b", [endless])],
      { limits: { clientStallTimeoutMs: 300 } },
    );
    const socket = await open(plane.at(80), "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    socket.pause();
    expect(await plane.record(({ status }) => status === 200)).toMatchObject({ reason: "ClientStalled" });
  });

  test("connections beyond the limit are closed at once; those that are open go on", async () => {
    const plane = await startEcho({ maxConnections: 3 });
    const first = await Promise.all(
      [1, 2, 3].map(() => open(plane.at(80), "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")),
    );
    await Promise.all(first.map((socket) => once(socket, "data")));
    const fourth = await stage.sockets.connect(plane.at(80));
    expect(await textOf(fourth).catch(() => "")).toBe("");
    const [leaving, ...staying] = first;
    leaving?.destroy();
    await expect
      .poll(() =>
        ask(plane.at(80), { host: "shop.example" }).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
    for (const socket of staying) {
      socket.write("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
      const [answer] = (await once(socket, "data")) as [Buffer];
      expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
    }
  });
}
