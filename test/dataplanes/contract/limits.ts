import { once } from "node:events";
import { connect as connectHttp2, createServer as createH2c } from "node:http2";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import type { ForwardAction } from "../../../src/plan/rule.ts";
import { type Answer, ask, textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneOptions, PlaneUnderTest } from "../support/plane-under-test.ts";
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

  test.each(["http", "h2c"] as const)(
    "a route's own timeouts, also one that is off, take the place of the limits on a backend (%s)",
    async (protocol) => {
      const waiting: (() => void)[] = [];
      const slow = (
        request: { readonly url?: string | undefined },
        response: { write(text: string): unknown; end(text: string): unknown },
      ): void => {
        if (request.url?.endsWith("/begun")) response.write("begun ");
        waiting.push(() => response.end("at last"));
      };
      const at =
        protocol === "http" ? await stage.backends.http(slow) : await stage.backends.listen(createH2c(slow));
      const timeouts: Readonly<Record<string, ForwardAction["timeouts"]>> = {
        off: { unbounded: true },
        request: { requestMs: 600_000 },
        backend: { backendRequestMs: 600_000 },
        none: {},
      };
      const rules = Object.entries(timeouts).map(([name, own]) =>
        rule({ path: `/${name}`, action: forwardTo("b", { timeouts: own }) }),
      );
      const plane = await stage.start(
        [http, shop, host(shop, "shop.example", rules), backend("b", [at], { protocol })],
        { limits: { backendResponseTimeoutMs: 100, backendIdleTimeoutMs: 100 } },
      );
      const to = (path: string): Promise<Answer> => ask(plane.at(80), { host: "shop.example", path });
      const paths = ["/off", "/request", "/backend", "/off/begun", "/request/begun", "/backend/begun"];
      const patient = paths.map(to);
      await expect.poll(() => waiting.length).toBe(paths.length);
      // Two that came later have run into both limits: the others would have, too.
      for (let round = 0; round < 2; round++) {
        expect((await to("/none")).status).toBe(504);
        await expect(to("/none/begun")).rejects.toThrow();
      }
      for (const answer of waiting) answer();
      expect((await Promise.all(patient)).map(({ status, body }) => `${status} ${body}`)).toEqual([
        ...Array(3).fill("200 at last"),
        ...Array(3).fill("200 begun at last"),
      ]);
    },
  );

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
