import { once } from "node:events";
import { createServer, request as requestHttp } from "node:http";
import {
  type ClientHttp2Stream,
  connect as connectHttp2,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
} from "node:http2";
import type { Server } from "node:net";
import { expect, test } from "vitest";
import type { PlanItem } from "../../../src/plan/plan.ts";
import type { Action } from "../../../src/plan/rule.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");
const POST = "POST / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n";
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
const PAUSE_MS = 20;

/** What came to the backend: how much of each body, and whether it was whole. */
type Bodies = { bytes: number; complete: boolean }[];

/** Bodies of requests, limited by a guard; the limit is ten bytes. */
export function describeBodyLimit(create: CreateDataPlane): void {
  const stage = setStage(create);

  async function start(
    action: Action = forwardTo("b"),
    limits: readonly number[] = [10],
  ): Promise<{ readonly plane: PlaneUnderTest; readonly bodies: Bodies }> {
    const bodies: Bodies = [];
    const at = await stage.backends.http((request, response) => {
      const body = { bytes: 0, complete: false };
      bodies.push(body);
      request.on("data", (chunk: Buffer) => {
        body.bytes += chunk.length;
      });
      request.on("end", () => {
        body.complete = true;
        response.end(`${body.bytes}`);
      });
      request.on("error", () => {});
    });
    const guards = limits.map((_, index) => `g${index}`);
    const items: PlanItem[] = [
      http,
      shop,
      wild,
      ...limits.map((maxBytes, index) => guard(`g${index}`, { type: "requestBody", maxBytes })),
      ...[shop, wild].map((each) => host(each, each.hostname, [rule({ action, guards })])),
      backend("b", [at]),
    ];
    return { plane: await stage.start(items), bodies };
  }

  /** Over HTTP/1.1, so many pieces one after the other; the status, or `none`. */
  async function send(plane: PlaneUnderTest, pieces: readonly string[]): Promise<string> {
    const socket = await stage.sockets.connect(plane.at(80));
    const status = new Promise<string>((resolve) => {
      socket.once("data", (bytes: Buffer) => resolve(bytes.toString().slice(9, 12)));
      socket.once("close", () => resolve("none"));
    });
    for (const piece of pieces) {
      if (socket.writable) socket.write(piece);
      await pause();
    }
    return await status;
  }

  function openHttp2(plane: PlaneUnderTest, headers: IncomingHttpHeaders = {}): ClientHttp2Stream {
    const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
    session.on("error", () => {});
    stage.onRelease(() => session.destroy());
    const stream = session.request({ ":method": "POST", ":authority": "shop.example", ...headers });
    return stream.on("error", () => {});
  }

  async function sendHttp2(
    plane: PlaneUnderTest,
    pieces: readonly string[],
    headers: IncomingHttpHeaders = {},
  ): Promise<number> {
    const stream = openHttp2(plane, headers);
    let status = 0;
    stream.on("response", (head) => {
      status = head[":status"] ?? 0;
    });
    const closed = closeOf(stream.resume());
    for (const [index, piece] of pieces.entries()) {
      if (index === pieces.length - 1) stream.end(piece);
      else stream.write(piece);
      await pause();
    }
    await closed;
    return status;
  }

  /** No backend has had more than the limit, or the end of a body that is longer. */
  const expectNothingBeyond = (bodies: Bodies): void => {
    expect(bodies.filter(({ bytes, complete }) => bytes > 10 || (complete && bytes !== 10))).toEqual([]);
  };

  test("a body that is announced to be too large reaches no backend", async () => {
    const { plane, bodies } = await start();
    expect(await send(plane, [`${POST}Content-Length: 10\r\n\r\n0123456789`])).toBe("200");
    expect(await send(plane, [`${POST}Content-Length: 0000000010\r\n\r\n0123456789`])).toBe("200");
    expect(bodies.splice(0)).toEqual(Array(2).fill({ bytes: 10, complete: true }));
    for (const length of ["11", "20", "99", "100", "1000000000000", "00011"])
      expect(await send(plane, [`${POST}Content-Length: ${length}\r\n\r\n`]), length).toBe("413");
    expect(await sendHttp2(plane, ["0123456789x"], { "content-length": "11" })).toBe(413);
    expect(bodies).toEqual([]);
    const { reason } = await plane.record(({ status }) => status === 413);
    expect(reason).toBe("BodyTooLarge");
  });

  test("a body in chunks is cut off at the limit, however it comes", async () => {
    const { plane, bodies } = await start();
    expect(await send(plane, [`${CHUNKED}a\r\n0123456789\r\n0\r\n\r\n`])).toBe("200");
    expect(await send(plane, [CHUNKED, "5\r\n01234\r\n", "5\r\n56789\r\n", "0\r\n\r\n"])).toBe("200");
    expect(await send(plane, [`${CHUNKED}b\r\n0123456789x\r\n0\r\n\r\n`])).toBe("413");
    expect(await send(plane, [CHUNKED, "a\r\n0123456789\r\n", "1\r\nx\r\n0\r\n\r\n"])).toBe("413");
    expect(await send(plane, [CHUNKED, "a\r\n0123456789\r\n", "1\r\nx\r\n"])).toBe("413");
    const large = "x".repeat(300_000);
    expect(await send(plane, [`${CHUNKED}493e0\r\n${large}\r\n0\r\n\r\n`])).toBe("413");
    expectNothingBeyond(bodies);
    expect(bodies.filter(({ complete }) => complete)).toHaveLength(2);
  });

  test("over HTTP/2, frames are counted as chunks are", async () => {
    const { plane, bodies } = await start();
    expect(await sendHttp2(plane, ["0123456789"])).toBe(200);
    expect(await sendHttp2(plane, ["01234", "56789", ""])).toBe(200);
    expect(await sendHttp2(plane, ["0123456789x"])).toBe(413);
    expect(await sendHttp2(plane, ["0123456789", "x"])).toBe(413);
    expect(await sendHttp2(plane, ["0123456789", "x", "y"])).toBe(413);
    expect(await sendHttp2(plane, ["x".repeat(200_000)])).toBe(413);
    // A client that lies about the length is no better off.
    expect(await sendHttp2(plane, ["0123456789x"], { "content-length": "5" })).not.toBe(200);
    expectNothingBeyond(bodies.filter(({ bytes }) => bytes !== 5));
    expect(bodies.filter(({ complete }) => complete)).toHaveLength(2);
  });

  test("however a host is written, bodies of its requests are limited", async () => {
    const { plane, bodies } = await start();
    for (const name of [
      "SHOP.example",
      "shop.example.",
      "Shop.Example.:80",
      "a.wild.example",
      "A.B.WILD.example.",
    ]) {
      const post = POST.replace("shop.example", name);
      expect(await send(plane, [`${post}Content-Length: 11\r\n\r\n`]), name).toBe("413");
      const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`;
      expect(await send(plane, [`${chunked}b\r\n0123456789x\r\n0\r\n\r\n`]), name).toBe("413");
      expect(await send(plane, [`${chunked}a\r\n0123456789\r\n0\r\n\r\n`]), name).toBe("200");
    }
    expectNothingBeyond(bodies);
  });

  test("of several limits the smallest holds, and a change of it takes effect", async () => {
    const { plane, bodies } = await start(forwardTo("b"), [10_000, 10, 500]);
    expect(await send(plane, [`${POST}Content-Length: 11\r\n\r\n`])).toBe("413");
    expect(await send(plane, [`${CHUNKED}b\r\n0123456789x\r\n0\r\n\r\n`])).toBe("413");
    await plane.apply({ upserts: [guard("g1", { type: "requestBody", maxBytes: 11 })], removes: [] });
    expect(await send(plane, [`${CHUNKED}b\r\n0123456789x\r\n0\r\n\r\n`])).toBe("200");
    expect(await send(plane, [`${CHUNKED}c\r\n0123456789xy\r\n0\r\n\r\n`])).toBe("413");
    await plane.apply({ upserts: [guard("g1", { type: "requestBody", maxBytes: 0 })], removes: [] });
    bodies.splice(0);
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
    expect(await send(plane, [`${POST}Content-Length: 0\r\n\r\n`])).toBe("200");
    expect(await send(plane, [`${CHUNKED}0\r\n\r\n`])).toBe("200");
    expect(await send(plane, [`${POST}Content-Length: 1\r\n\r\nx`])).toBe("413");
    expect(await send(plane, [`${CHUNKED}1\r\nx\r\n0\r\n\r\n`])).toBe("413");
    expect(bodies.filter(({ bytes }) => bytes > 0)).toEqual([]);
  });

  test("a large body passes a larger limit whole", async () => {
    const size = 3_000_000;
    const { plane, bodies } = await start(forwardTo("b"), [size]);
    const body = "x".repeat(size);
    const chunked = { "transfer-encoding": "chunked" };
    expect(
      (await ask(plane.at(80), { host: "shop.example", method: "POST", body, headers: chunked })).body,
    ).toBe(`${size}`);
    expect(await sendHttp2(plane, [body])).toBe(200);
    expect(await sendHttp2(plane, [`${body}x`])).toBe(413);
    expect(bodies.filter(({ complete }) => complete)).toHaveLength(2);
    expect(bodies.every(({ bytes }) => bytes <= size)).toBe(true);
  });

  test("redirects and fixed answers are not given to bodies that are too large", async () => {
    const { plane } = await start({ type: "redirect", statusCode: 302, hostname: "b.example", filters: {} });
    expect(await send(plane, [`${POST}Content-Length: 11\r\n\r\n`])).toBe("413");
    expect(await send(plane, [`${POST}Content-Length: 0\r\n\r\n`])).toBe("302");
  });

  test("a request that asks for an upgrade has its body limited all the same", async () => {
    const { plane, bodies } = await start();
    const upgrade = POST.replace("Connection: close", "Connection: Upgrade\r\nUpgrade: websocket");
    expect(await send(plane, [`${upgrade}Content-Length: 11\r\n\r\n0123456789x`])).not.toBe("200");
    const chunked = `${upgrade}Transfer-Encoding: chunked\r\n\r\n`;
    // Envoy passes nothing on before the backend has agreed to the upgrade.
    await send(plane, [chunked, "b\r\n0123456789x\r\n", "0\r\n\r\n"]);
    expect(bodies.filter(({ bytes }) => bytes > 10)).toEqual([]);
  });

  test("what comes over a WebSocket is no body", async () => {
    const { plane } = await start();
    const server: Server = createServer();
    let received = 0;
    server.on("upgrade", (_request, socket) => {
      socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.on("data", (bytes: Buffer) => {
        received += bytes.length;
        if (received === 1_000) socket.end("all");
      });
    });
    const at = await stage.backends.listen(server);
    await plane.apply({ upserts: [backend("b", [at])], removes: [] });
    const upgrade = requestHttp({
      port: plane.at(80),
      host: "127.0.0.1",
      headers: { host: "shop.example", connection: "Upgrade", upgrade: "websocket" },
    }).end();
    const [, socket] = await once(upgrade, "upgrade");
    socket.write("x".repeat(1_000));
    const [answer] = await once(socket, "data");
    expect(String(answer)).toBe("all");
  });

  test("a stream of gRPC goes on in both directions until it is too long", async () => {
    const { plane } = await start(forwardTo("b"), [10]);
    const server = createHttp2Server();
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      stream.on("data", (bytes: Buffer) => stream.write(bytes));
      stream.on("end", () => stream.end());
    });
    const at = await stage.backends.listen(server);
    const action = forwardTo("b");
    await plane.apply({
      upserts: [
        backend("b", [at], { protocol: "h2c" }),
        host(shop, "shop.example", [rule({ kind: "GRPCRoute", action, guards: ["g0"] })]),
      ],
      removes: [],
    });
    const stream = openHttp2(plane, { "content-type": "application/grpc", te: "trailers" });
    stream.write("01234");
    expect(String((await once(stream, "data"))[0])).toBe("01234");
    stream.write("56789");
    expect(String((await once(stream, "data"))[0])).toBe("56789");
    const beyond: Buffer[] = [];
    stream.on("data", (bytes: Buffer) => beyond.push(bytes));
    const closed = closeOf(stream);
    stream.end("x");
    await closed;
    expect(Buffer.concat(beyond).toString()).toBe("");
    // The answer had begun: it is cut off.
    expect(stream.rstCode).not.toBe(0);

    const short = openHttp2(plane, {
      "content-type": "application/grpc",
      te: "trailers",
      "content-length": "11",
    });
    const [head] = (await once(short.end("0123456789x"), "response")) as [IncomingHttpHeaders];
    expect([head[":status"], head["grpc-status"]]).toEqual([200, "2"]);
  });
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}

/** Also of a stream that is reset. */
function closeOf(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) => stream.once("close", resolve));
}
