import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { expect, test } from "vitest";
import { authority, issue } from "../support/certificates.ts";
import { type Seen, textOf } from "../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";
import type { Traits } from "./traits.ts";

const http = port(80);
const tls = port(443, "tls");
const ca = authority();

export function describeHttp2(create: CreateDataPlane, traits: Traits): void {
  const stage = setStage(create);
  const open = (url: string, options = {}): ClientHttp2Session => {
    const session = connect(url, options);
    session.on("error", () => {});
    stage.onRelease(() => session.destroy());
    return session;
  };

  test("over TLS by ALPN: many streams, 421 for another listener's name", async () => {
    const forA = certificate("c-a", issue(ca, ["a.example"]));
    const forB = certificate("c-b", issue(ca, ["b.example"]));
    const a = secure("a", tls, "a.example", [forA]);
    const b = secure("b", tls, "b.example", [forB]);
    const plane = await stage.start([
      tls,
      a,
      b,
      forA,
      forB,
      host(a, "a.example", [rule({ action: forwardTo("to-a") })]),
      host(b, "b.example", [rule({ action: forwardTo("to-b") })]),
      backend("to-a", [await stage.backends.echo("a")]),
      backend("to-b", [await stage.backends.echo("b")]),
    ]);
    const session = open(`https://127.0.0.1:${plane.at(443)}`, { servername: "a.example", ca: ca.cert });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        exchange(session, { ":path": `/${index}`, ":authority": "a.example", cookie: ["x=1", "y=2"] }),
      ),
    );
    for (const [index, { status, seen }] of answers.entries()) {
      expect(status).toBe(200);
      expect(seen()).toMatchObject({ backend: "a", url: `/${index}` });
      expect(seen().headers).toMatchObject({
        host: "a.example",
        cookie: "x=1; y=2",
        "x-forwarded-proto": "https",
      });
    }
    expect((await exchange(session, { ":path": "/", ":authority": "b.example" })).status).toBe(421);
    expect((await exchange(session, { ":path": "/", ":authority": "c.example" })).status).toBe(404);
    const posted = await exchange(
      session,
      { ":path": "/", ":authority": "a.example", ":method": "POST" },
      "x".repeat(300_000),
    );
    expect(posted.seen().body.length).toBe(300_000);
    expect((await plane.record(({ status }) => status === 421)).protocol).toBe("HTTP/2");
  });

  test("in clear with prior knowledge, beside HTTP/1.1 on the same port", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const session = open(`http://127.0.0.1:${plane.at(80)}`);
    const answer = await exchange(session, { ":path": "/x", ":authority": "shop.example" });
    expect(answer.seen()).toMatchObject({ backend: "b", url: "/x" });
    const head = await exchange(session, { ":path": "/x", ":authority": "shop.example", ":method": "HEAD" });
    expect(head).toMatchObject({ status: 200, body: "" });
  });

  test("to backends that speak HTTP/2, with trailers both ways", async () => {
    const server = createServer();
    server.on("stream", async (stream, headers) => {
      let trailers: IncomingHttpHeaders = {};
      stream.on("trailers", (fields) => {
        trailers = fields;
      });
      const body = await textOf(stream);
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () =>
        stream.sendTrailers({ "grpc-status": "7", "x-te": String(headers.te) }),
      );
      stream.end(`${headers[":path"]} ${body} ${trailers["x-sum"]}`);
    });
    const at = await stage.backends.listen(server);
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({ path: "/h2c", action: forwardTo("h2c") }),
        rule({ path: "/", action: forwardTo("grpc"), kind: "GRPCRoute" }),
      ]),
      backend("h2c", [at], { protocol: "h2c" }),
      backend("grpc", [at]),
    ]);
    const session = open(`http://127.0.0.1:${plane.at(80)}`);
    for (const path of ["/h2c", "/pkg.Service/Call"]) {
      const answer = await exchange(
        session,
        {
          ":path": path,
          ":authority": "shop.example",
          ":method": "POST",
          te: "trailers",
          "content-type": "application/grpc",
        },
        "payload",
        { "x-sum": "42" },
      );
      expect(answer).toMatchObject({ status: 200, body: `${path} payload 42` });
      expect(answer.trailers).toMatchObject({ "grpc-status": "7", "x-te": "trailers" });
    }
  });

  test("trailers behind an answer of known length reach who asks for them, and the answer is whole in any case", async () => {
    const server = createServer();
    server.on("stream", (stream) => {
      stream.resume();
      stream.respond({ ":status": 200, "content-length": "6" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "42" }));
      stream.write("abc");
      stream.end("def");
    });
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("h2c") })]),
      backend("h2c", [await stage.backends.listen(server)], { protocol: "h2c" }),
    ]);
    const session = open(`http://127.0.0.1:${plane.at(80)}`);
    const head = { ":path": "/", ":authority": "shop.example" };
    const asking = await exchange(session, { ...head, te: "trailers" });
    expect(asking).toMatchObject({ status: 200, body: "abcdef", trailers: { "x-sum": "42" } });
    for (let round = 0; round < 5; round++) {
      expect(await exchange(session, head)).toMatchObject({ status: 200, body: "abcdef" });
    }
  });

  test("says to gRPC clients in their own words what went wrong", async () => {
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ path: "/empty", action: forwardTo("empty"), kind: "GRPCRoute" })]),
      backend("empty", []),
    ]);
    const session = open(`http://127.0.0.1:${plane.at(80)}`);
    const call = {
      ":authority": "shop.example",
      ":method": "POST",
      "content-type": "application/grpc+proto",
    };
    const unavailable = await exchange(session, { ...call, ":path": "/empty/Call" }, "x");
    expect(unavailable).toMatchObject({ status: 200, headers: { "grpc-status": "14" } });
    const unimplemented = await exchange(session, { ...call, ":path": "/none/Call" }, "x");
    expect(unimplemented).toMatchObject({ status: 200, headers: { "grpc-status": "12" } });
  });

  test("carries both directions of a stream at the same time", async () => {
    const server = createServer();
    server.on("stream", (stream) => {
      stream.respond({ ":status": 200 });
      stream.pipe(stream);
    });
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.listen(server)], { protocol: "h2c" }),
    ]);
    const session = open(`http://127.0.0.1:${plane.at(80)}`);
    const stream = session.request({ ":path": "/", ":authority": "shop.example", ":method": "POST" });
    for (const word of ["one", "two", "three"]) {
      stream.write(word);
      const [echoed] = (await once(stream, "data")) as [Buffer];
      expect(String(echoed)).toBe(word);
    }
    stream.end();
    await once(stream, "close");
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  });

  // Envoy learns the limit of a new connection with its SETTINGS, and sends a refused request again
  // once: on a very busy machine that may be too early, too.
  const refusedTwice = { retry: traits.ownHttp ? 0 : 2 };
  test("more streams than a backend takes at once, and backends that say goodbye", refusedTwice, async () => {
    const server = createServer({ settings: { maxConcurrentStreams: 4 } });
    let sessions = 0;
    server.on("session", () => {
      sessions++;
    });
    server.on("stream", (stream, headers) => {
      setTimeout(() => {
        if (!stream.destroyed) stream.respond({ ":status": 200 });
        stream.end(headers[":path"]);
        if (headers[":path"] === "/last") stream.session?.close();
      }, 5);
    });
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.listen(server)], { protocol: "h2c" }),
    ]);
    const session = open(`http://127.0.0.1:${plane.at(80)}`);
    const paths = Array.from({ length: 40 }, (_, index) => `/${index}`);
    const get = (path: string): Promise<Http2Answer> =>
      exchange(session, { ":path": path, ":authority": "shop.example" });
    expect((await Promise.all(paths.map(get))).map(({ body }) => body)).toEqual(paths);
    const before = sessions;
    expect(before).toBeGreaterThan(1);
    for (let round = 0; round <= before; round++) {
      expect((await get("/last")).body).toBe("/last");
      expect((await get("/after")).body).toBe("/after");
    }
    expect(sessions).toBeGreaterThan(before);
  });

  test("a client that leaves a stream makes the backend's stream end, too", async () => {
    const server = createServer();
    const left = new Promise<number>((resolve) => {
      server.on("stream", (stream) => {
        stream.respond({ ":status": 200 });
        stream.write("begun");
        stream.on("error", () => {});
        stream.on("close", () => resolve(stream.rstCode));
      });
    });
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.listen(server)], { protocol: "h2c" }),
    ]);
    const session = open(`http://127.0.0.1:${plane.at(80)}`);
    const stream = session.request({ ":path": "/", ":authority": "shop.example" });
    await once(stream, "data");
    stream.close(constants.NGHTTP2_CANCEL);
    expect(await left).not.toBe(constants.NGHTTP2_NO_ERROR);
  });
}

interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: IncomingHttpHeaders;
  seen(): Seen;
}

async function exchange(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string,
  trailers?: OutgoingHttpHeaders,
): Promise<Http2Answer> {
  const stream = session.request(headers, {
    endStream: body === undefined,
    waitForTrailers: trailers !== undefined,
  });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers ?? {}));
  let received: IncomingHttpHeaders = {};
  stream.on("trailers", (fields) => {
    received = fields;
  });
  if (body !== undefined) stream.end(body);
  // Whoever begins to read only after the header may find a stream that is over.
  const text = textOf(stream);
  text.catch(() => {});
  const [answered] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status"?: number }];
  const read = await text;
  return {
    status: answered[":status"] ?? 0,
    headers: answered,
    body: read,
    trailers: received,
    seen: () => JSON.parse(read) as Seen,
  };
}
