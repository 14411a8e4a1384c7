import { once } from "node:events";
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from "node:http";
import { connect, createServer, type IncomingHttpHeaders as Http2Headers } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync, createGunzip, gunzipSync, zstdDecompressSync } from "node:zlib";
import { expect, test } from "vitest";
import type { PlanItem } from "../../../src/plan/plan.ts";
import type { CompressionPolicy } from "../../../src/plan/rule.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { readAll, seeded } from "../support/sockets.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");
const other = listener("other", http, "other.example");
/** Every way to write a name that could lead past the settings of its rule. */
const NAMES = ["shop.example", "SHOP.example", "shop.example.", "a.wild.example", "A.B.WILD.example."];

const POLICY: CompressionPolicy = {
  algorithms: ["brotli", "gzip", "zstd"],
  minBytes: 100,
  contentTypes: ["text/html", "text/event-stream"],
};
const BODY = "hello compressed world ".repeat(100);
const HTML = { "content-type": "text/html; charset=utf-8" };

const DECODERS: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  br: (body) => brotliDecompressSync(body),
  gzip: (body) => gunzipSync(body),
  zstd: (body) => zstdDecompressSync(body),
};

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

async function bytesOf(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function get(
  at: number,
  headers: OutgoingHttpHeaders,
  { method = "GET", path = "/", name = "shop.example" } = {},
): Promise<Got> {
  const sent = request({ port: at, host: "127.0.0.1", method, path, headers: { host: name, ...headers } });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await bytesOf(response) };
}

function shown({ headers, body }: Got): string {
  const coding = headers["content-encoding"];
  return (coding === undefined ? body : (DECODERS[coding]?.(body) ?? body)).toString();
}

/** Compression of answers (RFC 9110, 8.4 and 12.5.3). */
export function describeCompression(create: CreateDataPlane): void {
  const stage = setStage(create);

  /** shop.example and *.wild.example with compression, but for /as-it-is. */
  async function start(
    handler: (request: IncomingMessage, response: ServerResponse) => void,
    policy: CompressionPolicy = POLICY,
  ): Promise<PlaneUnderTest> {
    const action = forwardTo("b", { compression: policy });
    const rules = [rule({ path: "/as-it-is", action: forwardTo("b") }), rule({ action })];
    return await stage.start([
      http,
      ...[shop, wild, other],
      host(shop, "shop.example", rules),
      host(wild, "*.wild.example", rules),
      host(other, "other.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.http(handler)]),
    ]);
  }

  test("each coding for a client that accepts it, however the host is written", async () => {
    const head = { ...HTML, "content-length": BODY.length };
    const plane = await start((_request, response) => response.writeHead(200, head).end(BODY));
    for (const name of NAMES) {
      for (const coding of ["br", "gzip", "zstd"]) {
        const got = await get(plane.at(80), { "accept-encoding": coding }, { name });
        expect(got.headers["content-encoding"], name).toBe(coding);
        expect(got.headers["vary"], name).toBe("Accept-Encoding");
        expect(got.headers["content-length"], name).toBeUndefined();
        expect(got.body.length).toBeLessThan(BODY.length / 4);
        expect(shown(got)).toBe(BODY);
      }
      const without = await get(plane.at(80), {}, { name });
      expect(without.headers).toMatchObject({ vary: "Accept-Encoding", "content-length": "2300" });
      expect(without.body.toString()).toBe(BODY);
    }
  });

  test("rules and hosts without it are left alone", async () => {
    const plane = await start((_request, response) => response.writeHead(200, HTML).end(BODY));
    const accepting = { "accept-encoding": "gzip, br" };
    const own = await get(plane.at(80), accepting, { path: "/as-it-is" });
    const others = await get(plane.at(80), accepting, { name: "other.example" });
    for (const { headers, body } of [own, others]) {
      expect([headers["content-encoding"], headers["vary"]]).toEqual([undefined, undefined]);
      expect(body.toString()).toBe(BODY);
    }
    const missing = await get(plane.at(80), accepting, { name: "nobody.example" });
    expect([missing.status, missing.headers["vary"]]).toEqual([404, undefined]);
  });

  test("the client's weights decide, then the first of the policy, then the client's order", async () => {
    const plane = await start((_request, response) => response.writeHead(200, HTML).end(BODY));
    const wanted: readonly (readonly [accepted: string, coding: string | undefined])[] = [
      ["gzip, deflate, br, zstd", "br"],
      ["gzip, zstd", "gzip"],
      ["zstd, gzip", "zstd"],
      ["gzip;q=0.5, br;q=0.4", "gzip"],
      ["gzip ; Q = 0.5 , br;q=0.4", "gzip"],
      ["br;q=0.001", "br"],
      ["*", "br"],
      ["*, br;q=0", "gzip"],
      ["gzip;q=0.5, *;q=0.8", "br"],
      ["*;q=0", undefined],
      ["identity, gzip", undefined],
      ["identity, br", "br"],
      ["identity;q=0.5, gzip;q=0.9", "gzip"],
      ["gzip;q=0", undefined],
      ["gzip, gzip;q=0", undefined],
      ["deflate, compress", undefined],
      ["", undefined],
      [",,gzip,,", "gzip"],
      ["gzip;q=nonsense, zstd", "zstd"],
      ["gzip;q=-1", undefined],
      [`${"x, ".repeat(2_000)}gzip`, "gzip"],
      [`gzip${";q=1".repeat(1_000)}`, undefined],
    ];
    for (const [accepted, coding] of wanted) {
      const got = await get(plane.at(80), { "accept-encoding": accepted });
      expect(got.headers["content-encoding"], accepted.slice(0, 40)).toBe(coding);
      expect(shown(got)).toBe(BODY);
      expect(got.headers["vary"]).toBe("Accept-Encoding");
    }
    const twice = await get(plane.at(80), { "accept-encoding": ["deflate", "zstd"] });
    expect(twice.headers["content-encoding"]).toBe("zstd");
  });

  test("what is short, encoded, partial, or not to be transformed is left alone", async () => {
    const cases: Readonly<Record<string, readonly [status: number, headers: OutgoingHttpHeaders]>> = {
      "/short": [200, { ...HTML, "content-length": "99" }],
      "/encoded": [200, { ...HTML, "content-encoding": "br" }],
      "/identity": [200, { ...HTML, "content-encoding": "identity" }],
      "/part": [206, { ...HTML, "content-range": "bytes 0-2299/5000" }],
      "/other-type": [200, { "content-type": "image/png" }],
      "/no-transform": [200, { ...HTML, "cache-control": "private, No-Transform" }],
    };
    const plane = await start(({ url = "" }, response) => {
      const [status = 500, headers = {}] = cases[url] ?? [];
      const length = Number(headers["content-length"] ?? BODY.length);
      response.writeHead(status, { "content-length": length, etag: '"e"', ...headers });
      response.end(BODY.slice(0, length));
    });
    for (const [path, [status, headers]] of Object.entries(cases)) {
      const got = await get(plane.at(80), { "accept-encoding": "gzip" }, { path });
      expect(got.status).toBe(status);
      expect(got.headers["content-encoding"], path).toBe(headers["content-encoding"]);
      expect(got.headers["etag"], path).toBe('"e"');
      expect(got.headers["vary"], path).toBeUndefined();
      expect(BODY.startsWith(got.body.toString()), path).toBe(true);
      expect(String(got.body.length), path).toBe(got.headers["content-length"]);
    }
  });

  test("answers without a body say what they would vary by, and nothing else", async () => {
    const plane = await start(({ url = "" }, response) => {
      const status = Number(url.slice(1) || 200);
      const length = status === 200 ? { "content-length": "5000" } : {};
      response.writeHead(status, { ...HTML, ...length, etag: '"e"' }).end();
    });
    for (const [method, path] of [
      ["HEAD", "/"],
      ["GET", "/204"],
      ["GET", "/304"],
    ] as const) {
      const { headers, body } = await get(plane.at(80), { "accept-encoding": "br" }, { method, path });
      expect(headers["content-encoding"]).toBeUndefined();
      expect([headers["etag"], headers["vary"]]).toEqual(['"e"', "Accept-Encoding"]);
      expect(headers["content-length"]).toBe(method === "HEAD" ? "5000" : undefined);
      expect(body.length).toBe(0);
    }
  });

  test("types in capitals, absent ones, errors and answers of unknown length are compressed", async () => {
    const plane = await start(({ url }, response) => {
      if (url === "/capitals") response.writeHead(200, { "content-type": "Text/HTML ;charset=x" });
      else if (url === "/absent") response.writeHead(200);
      else response.writeHead(url === "/500" ? 500 : 200, HTML);
      if (url === "/chunks") response.write(BODY.slice(0, 10));
      response.end(url === "/chunks" ? BODY.slice(10) : BODY);
    });
    for (const path of ["/capitals", "/absent", "/500", "/chunks"]) {
      const got = await get(plane.at(80), { "accept-encoding": "gzip" }, { path });
      expect(got.headers["content-encoding"], path).toBe("gzip");
      expect(shown(got)).toBe(BODY);
    }
  });

  test("a strong ETag becomes weak, and Vary is added to", async () => {
    const tags = ['"abc"', 'W/"abc"'];
    const plane = await start((_request, response) =>
      response.writeHead(200, { ...HTML, etag: tags.shift(), vary: "Origin" }).end(BODY),
    );
    for (let round = 0; round < 2; round++) {
      const { headers } = await get(plane.at(80), { "accept-encoding": "zstd" });
      expect([headers["etag"], headers["vary"]]).toEqual(['W/"abc"', "Origin, Accept-Encoding"]);
    }
  });

  test("what a route sets decides as if the backend had said it", async () => {
    const set = (name: string, value: string): PlanItem =>
      host(shop, "shop.example", [
        rule({
          action: forwardTo("b", {
            compression: POLICY,
            filters: { responseHeaders: [{ op: "set", name, value }] },
          }),
        }),
      ]);
    const at = await stage.backends.http((_request, response) => response.writeHead(200, HTML).end(BODY));
    const plane = await stage.start([http, shop, set("cache-control", "no-transform"), backend("b", [at])]);
    const { headers } = await get(plane.at(80), { "accept-encoding": "gzip" });
    expect(headers["content-encoding"]).toBeUndefined();
  });

  test("answers of the gateway itself are as they are", async () => {
    // Envoy takes its own texts of errors for those of the backend, but they are shorter.
    const compression = { ...POLICY, minBytes: 1_024, contentTypes: ["text/plain", "text/html"] };
    const content = { type: "text/html", text: BODY };
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({ path: "/answered", action: { type: "respond", status: 503, reason: "", content } }),
        rule({ path: "/moved", action: { type: "redirect", scheme: "https", statusCode: 301, filters: {} } }),
        rule({ path: "/away", action: forwardTo("away", { compression }) }),
        rule({ path: "/unknown", action: forwardTo("unknown", { compression }) }),
        rule({ path: "/empty", action: forwardTo("empty", { compression }) }),
      ]),
      backend("away", [await lastingPort()]),
      backend("empty", []),
    ]);
    for (const path of ["/answered", "/moved", "/away", "/unknown", "/empty", "/nowhere"]) {
      for (const name of ["shop.example", "SHOP.example"]) {
        const { status, headers } = await get(plane.at(80), { "accept-encoding": "gzip" }, { path, name });
        expect(status).toBeGreaterThan(300);
        expect([path, headers["content-encoding"]]).toEqual([path, undefined]);
      }
    }
  });

  test("events reach their client while the backend has more to say", async () => {
    const answers: ServerResponse[] = [];
    const plane = await start((_request, response) => {
      answers.push(response);
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n");
    });
    const sent = request({
      port: plane.at(80),
      headers: { host: "shop.example", "accept-encoding": "gzip" },
    });
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    expect(response.headers["content-encoding"]).toBe("gzip");
    const events = response.pipe(createGunzip());
    expect(String((await once(events, "data"))[0])).toBe("data: first\n\n");
    answers[0]?.write("data: second\n\n");
    expect(String((await once(events, "data"))[0])).toBe("data: second\n\n");
    answers[0]?.end();
    await once(events, "end");
  });

  test("large bodies come whole, over HTTP/2 as well", async () => {
    const random = seeded(7);
    const large = Array.from({ length: 300_000 }, () => random().toString(36)).join("");
    const plane = await start((_request, response) => response.writeHead(200, HTML).end(large));
    const one = await get(plane.at(80), { "accept-encoding": "zstd" });
    expect(shown(one) === large).toBe(true);
    const session = connect(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    for (const coding of ["br", "gzip", "zstd"]) {
      const stream = session.request({ ":authority": "Shop.example", "accept-encoding": coding });
      const [headers] = (await once(stream, "response")) as [Http2Headers];
      expect(headers).toMatchObject({ "content-encoding": coding, vary: "Accept-Encoding" });
      expect(headers["content-length"]).toBeUndefined();
      const body = DECODERS[coding]?.(await bytesOf(stream));
      expect(body?.toString() === large).toBe(true);
    }
  });

  test("an answer that the backend breaks off is broken off", async () => {
    const plane = await start((_request, response) => {
      response.writeHead(200, { ...HTML, "content-length": "5000" }).write(BODY);
      setTimeout(() => response.destroy(), 50);
    });
    await expect(get(plane.at(80), { "accept-encoding": "gzip" })).rejects.toThrow(/aborted|hang up|RESET/);
  });

  test("a client that leaves ends the backend's answer", async () => {
    const closed = Promise.withResolvers<void>();
    const plane = await start((_request, response) => {
      response.writeHead(200, HTML);
      const timer = setInterval(() => response.write(BODY), 50);
      response.on("close", () => {
        clearInterval(timer);
        closed.resolve();
      });
    });
    const sent = request({ port: plane.at(80), headers: { host: "shop.example", "accept-encoding": "br" } });
    sent.on("error", () => {}).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.destroy();
    await closed.promise;
  });

  test("a client that does not read stops the backend", async () => {
    const random = seeded(3);
    const piece = Buffer.from(Array.from({ length: 64 * 1024 }, () => Math.floor(random() * 256)));
    let sentBytes = 0;
    const plane = await start((_request, response) => {
      response.writeHead(200, HTML);
      const fill = (): void => {
        do sentBytes += piece.length;
        while (response.write(piece) && sentBytes < 1_000_000_000);
      };
      response.on("drain", fill);
      fill();
    });
    const sent = request({
      port: plane.at(80),
      headers: { host: "shop.example", "accept-encoding": "gzip" },
    });
    sent.on("error", () => {}).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.pause();
    let before = -1;
    while (before !== sentBytes) {
      before = sentBytes;
      await sleep(300);
    }
    expect(sentBytes).toBeLessThan(100_000_000);
    response.destroy();
  });

  test("gRPC and trailers pass", async () => {
    const server = createServer();
    server.on("stream", (stream, headers) => {
      const type = String(headers["x-type"]);
      stream.respond({ ":status": 200, "content-type": type }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(BODY);
    });
    const at = await stage.backends.listen(server);
    const action = forwardTo("b", { compression: POLICY });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action, kind: "GRPCRoute" })]),
      backend("b", [at], { protocol: "h2c" }),
    ]);
    const session = connect(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    for (const type of ["application/grpc", "text/html"]) {
      const stream = session.request({
        ":authority": "shop.example",
        ...{ te: "trailers", "x-type": type, "accept-encoding": "gzip" },
      });
      const trailers = once(stream, "trailers") as Promise<[Http2Headers]>;
      const [headers] = (await once(stream, "response")) as [Http2Headers];
      const isCompressed = type === "text/html";
      expect(headers["content-encoding"]).toBe(isCompressed ? "gzip" : undefined);
      const body = await bytesOf(stream);
      expect((isCompressed ? gunzipSync(body) : body).toString()).toBe(BODY);
      expect((await trailers)[0]).toMatchObject({ "grpc-status": "0" });
    }
  });

  test("WebSockets pass as they are, and so does the answer that refuses one", async () => {
    const at = await stage.sockets.serve((socket) => {
      socket.once("data", (bytes) => {
        if (bytes.includes("/refused")) {
          const head = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${BODY.length}\r\n\r\n`;
          socket.write(`${head}${BODY}`);
        } else {
          const head =
            "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Type: text/html";
          socket.end(`${head}\r\n\r\n${BODY}`);
        }
      });
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b", { compression: POLICY }) })]),
      backend("b", [at]),
    ]);
    const upgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    for (const path of ["/", "/refused"]) {
      const client = await stage.sockets.connect(plane.at(80));
      client.write(
        `GET ${path} HTTP/1.1\r\nHost: SHOP.example\r\nAccept-Encoding: gzip\r\n${upgrade}\r\n\r\n`,
      );
      if (path === "/refused") setTimeout(() => client.end(), 500);
      const text = (await readAll(client)).toString();
      expect(text).toMatch(path === "/" ? /^HTTP\/1\.1 101 / : /^HTTP\/1\.1 200 /);
      expect(text).not.toMatch(/content-encoding/i);
      if (path === "/") expect(text).toContain(BODY);
    }
  });
}
