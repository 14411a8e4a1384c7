import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sockets } from "../../support/sockets.ts";
import { type HostileGateway, startGateway } from "./gateway.ts";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  frame,
  frameType,
  headersFrames,
  hpack,
  RawH2,
  u32,
} from "./h2-frames.ts";
import { Observed, strictBackend } from "./strict-backend.ts";

const sockets = new Sockets();
const observed = new Observed();
let gateway: HostileGateway;
let cases = 0;

beforeAll(async () => {
  const backends = {
    public: await strictBackend("public", sockets, observed),
    secret: await strictBackend("secret", sockets, observed),
  };
  // A connection that is merely left alone must not look like one that was ended.
  gateway = await startGateway(backends, { keepAliveTimeoutMs: 600_000, headerTimeoutMs: 600_000 });
});

afterAll(async () => {
  await gateway.close();
  await sockets.release();
});

const {
  data,
  headers,
  priority,
  rstStream,
  settings,
  pushPromise,
  ping,
  goaway,
  windowUpdate,
  continuation,
} = frameType;

/** A fine request, but for what is replaced (by name) or added. */
function request(changes: readonly Field[] = [], without: readonly string[] = []): readonly Field[] {
  const base: readonly Field[] = [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/h2"],
    [":authority", "public.example"],
  ];
  const replaced = base
    .filter(([name]) => !without.includes(name))
    .map(([name, value]): Field => changes.find(([other]) => other === name) ?? [name, value]);
  const names = new Set(base.map(([name]) => name));
  return [...replaced, ...changes.filter(([name]) => !names.has(name))];
}

/** Somebody else, on a connection of their own, sees nothing of all this. */
async function bystander(): Promise<void> {
  const other = await RawH2.open(sockets, gateway.port);
  other.send(headersFrames(1, request([["x-id", "bystander"]])));
  expect(await other.outcome(1)).toBe(200);
  other.socket.destroy();
  expect(observed.violations).toEqual([]);
}

const post = (changes: readonly Field[]): readonly Field[] => request([[":method", "POST"], ...changes]);

describe("HTTP/2: requests that are refused", () => {
  it("serves the request that all the others are made from", async () => {
    await bystander();
  });

  it.each<[string, readonly Field[]]>([
    ["a name in capitals", request([["X-Upper", "1"]])],
    ["Connection", request([["connection", "close"]])],
    ["Keep-Alive", request([["keep-alive", "timeout=5"]])],
    ["Proxy-Connection", request([["proxy-connection", "keep-alive"]])],
    ["Upgrade", request([["upgrade", "websocket"]])],
    ["Transfer-Encoding", post([["transfer-encoding", "chunked"]])],
    ["TE with something else than trailers", request([["te", "gzip"]])],
    ["no :method", request([], [":method"])],
    ["no :path", request([], [":path"])],
    ["no :scheme", request([], [":scheme"])],
    ["no :authority and no Host", request([], [":authority"])],
    ["two :methods", [...request(), [":method", "POST"]]],
    ["two :paths", [[":path", "/admin"], ...request()]],
    ["two :authorities", [[":authority", "secret.example"], ...request()]],
    ["two :methods, the first of them empty", [[":method", ""], ...request()]],
    ["two :paths, the first of them empty", [[":path", ""], ...request()]],
    ["two :schemes, the first of them empty", [[":scheme", ""], ...request()]],
    ["two :authorities, the first of them empty", [[":authority", ""], ...request()]],
    ["an unknown pseudo-header", [[":smuggled", "1"], ...request()]],
    ["the status of an answer", [[":status", "200"], ...request()]],
    ["a pseudo-header behind the others", [["a", "b"], ...request()]],
    ["an empty :path", request([[":path", ""]])],
    ["a :path without a slash", request([[":path", "admin"]])],
    ["a URL as :path", request([[":path", "http://secret.example/admin"]])],
    ["a space in :path", request([[":path", "/a b"]])],
    ["a request line in :path", request([[":path", "/ HTTP/1.1\r\nHost: secret.example\r\n\r\nGET /admin"]])],
    ["a tab in :path", request([[":path", "/a\tb"]])],
    ["a hash in :path", request([[":path", "/a#b"]])],
    ["a backslash in :path", request([[":path", "/a\\..\\admin"]])],
    ["an escaped NUL in :path", request([[":path", "/%00"]])],
    ["a byte beyond ASCII in :path", request([[":path", "/\xe4"]])],
    ["an asterisk as :path of GET", request([[":path", "*"]])],
    ["an empty :method", request([[":method", ""]])],
    ["a space in :method", request([[":method", "GET /admin HTTP/1.1\r\nx:"]])],
    ["a :method that is no token", request([[":method", "G{T"]])],
    ["an empty :authority", request([[":authority", ""]])],
    ["a user in :authority", request([[":authority", "secret.example@public.example"]])],
    ["a path in :authority", request([[":authority", "public.example/admin"]])],
    ["a line break in :authority", request([[":authority", "public.example\r\nx: y"]])],
    ["a list as :authority", request([[":authority", "public.example,secret.example"]])],
    ["an unknown :authority", request([[":authority", "elsewhere.example"]])],
    ["a Host against :authority", request([["host", "secret.example"]])],
    [
      "two Hosts",
      request(
        [
          ["host", "public.example"],
          ["host", "secret.example"],
        ],
        [":authority"],
      ),
    ],
    ["a method of 1 kB", request([[":method", "A".repeat(1_000)]])],
    ["a signed length", post([["content-length", "+5"]])],
    [
      "two lengths",
      post([
        ["content-length", "5"],
        ["content-length", "6"],
      ]),
    ],
    ["a length with nothing behind it", post([["content-length", "5"]])],
    [
      "plain CONNECT",
      [
        [":method", "CONNECT"],
        [":authority", "public.example:443"],
      ],
    ],
    [
      "CONNECT for an unknown protocol",
      request([
        [":method", "CONNECT"],
        [":protocol", "smuggled"],
      ]),
    ],
    [":protocol without CONNECT", request([[":protocol", "websocket"]])],
    ["a header of 1 MB", request([["a", "b".repeat(1_000_000)]])],
    ["a thousand headers", request(Array.from({ length: 1_000 }, (_, i): Field => [`a${i}`, "b"]))],
  ])("%s", async (_title, fields) => {
    const id = `h2-${++cases}`;
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(headersFrames(1, [...fields, ["x-id", id]]));
    const outcome = await connection.outcome(1);
    if (typeof outcome === "number") expect([400, 404, 405, 413, 431, 501]).toContain(outcome);
    connection.socket.destroy();
    await bystander();
    expect(observed.of(id)).toEqual([]);
  });

  it.each<[string, number, Buffer[]]>([
    ["more data than its length", 3, [Buffer.from("hello")]],
    ["less data than its length", 50, [Buffer.from("hello")]],
    ["a request behind its length", 0, [Buffer.from("GET /admin HTTP/1.1\r\nHost: secret.example\r\n\r\n")]],
  ])("%s is never whole for the backend", async (_title, length, parts) => {
    const id = `h2-${++cases}`;
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(
      headersFrames(
        1,
        post([
          ["content-length", String(length)],
          ["x-id", id],
        ]),
        false,
      ),
    );
    connection.send(...parts.map((part, i) => frame(data, i === parts.length - 1 ? END_STREAM : 0, 1, part)));
    const outcome = await connection.outcome(1);
    if (typeof outcome === "number") expect([400, 502]).toContain(outcome);
    connection.socket.destroy();
    await bystander();
    expect(observed.of(id).filter(({ complete }) => complete)).toEqual([]);
  });

  it("trailers with pseudo-headers end the stream", async () => {
    const id = `h2-${++cases}`;
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(headersFrames(1, post([["x-id", id]]), false), frame(data, 0, 1, Buffer.from("body")));
    connection.send(headersFrames(1, [[":path", "/admin"]], true));
    expect(await connection.outcome(1)).not.toBe(200);
    connection.socket.destroy();
    await bystander();
    expect(observed.of(id).filter(({ complete }) => complete)).toEqual([]);
  });
});

describe("HTTP/2: requests that are normalised", () => {
  it.each<[string, readonly Field[], string, string]>([
    ["dots in :path", request([[":path", "/open/../admin"]]), "secret", "/admin"],
    ["escaped letters", request([[":path", "/%61dmin"]]), "secret", "/admin"],
    ["two slashes", request([[":path", "//admin"]]), "secret", "/admin"],
    ["an escaped slash", request([[":path", "/open%2fadmin"]]), "public", "/open%2Fadmin"],
    ["a Host instead of :authority", request([["host", "secret.example"]], [":authority"]), "secret", "/h2"],
    ["an authority in capitals", request([[":authority", "SECRET.example"]]), "secret", "/h2"],
    ["TE: trailers", request([["te", "trailers"]]), "public", "/h2"],
    [
      "cookies in pieces",
      request([
        ["cookie", "a=b"],
        ["cookie", "c=d"],
      ]),
      "public",
      "/h2",
    ],
  ])("%s", async (_title, fields, backend, path) => {
    const id = `h2-${++cases}`;
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(headersFrames(1, [...fields, ["x-id", id]]));
    expect(await connection.outcome(1)).toBe(200);
    connection.socket.destroy();
    expect(observed.of(id).map((seen) => [seen.backend, seen.path, seen.complete])).toEqual([
      [backend, path, true],
    ]);
    expect(observed.violations).toEqual([]);
    const cookies = observed.of(id)[0]?.headers.filter(([name]) => name === "cookie") ?? [];
    expect(cookies.length).toBeLessThanOrEqual(1);
  });
});

/**
 * nghttp2 leaves such fields out before anybody routes on them; the request goes on without them.
 */
describe("HTTP/2: fields that are left out", () => {
  it.each<[string, Field]>([
    ["an empty name", ["", "smuggled"]],
    ["a space in a name", ["a b", "smuggled"]],
    ["a colon in a name", ["a:b", "smuggled"]],
    ["a line break in a name", ["a: b\r\nx-smuggled", "1"]],
    ["a NUL in a name", ["a\0b", "smuggled"]],
    ["a line break in a value", ["a", "b\r\nx-smuggled: 1"]],
    ["a request in a value", ["a", "b\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: secret.example\r\n\r\n"]],
    ["an LF in a value", ["a", "b\nsmuggled"]],
    ["a CR in a value", ["a", "b\rsmuggled"]],
    ["a NUL in a value", ["a", "b\0smuggled"]],
  ])("%s", async (_title, field) => {
    const id = `h2-${++cases}`;
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(headersFrames(1, request([field, ["x-id", id]])));
    const outcome = await connection.outcome(1);
    connection.socket.destroy();
    await bystander();
    const seen = observed.of(id);
    if (outcome === 200) expect(seen.map(({ path, complete }) => [path, complete])).toEqual([["/h2", true]]);
    else expect(seen).toEqual([]);
    expect(JSON.stringify(observed.requests)).not.toContain("smuggled");
  });
});

describe("HTTP/2: frames that break the rules end the connection", () => {
  const fine = headersFrames(1, request());
  it.each<[string, Buffer]>([
    ["DATA on stream 0", frame(data, 0, 0, Buffer.from("x"))],
    ["HEADERS on stream 0", frame(headers, END_HEADERS | END_STREAM, 0, hpack(request()))],
    ["HEADERS on an even stream", frame(headers, END_HEADERS | END_STREAM, 2, hpack(request()))],
    ["DATA on a stream that does not exist", frame(data, END_STREAM, 9, Buffer.from("x"))],
    ["RST_STREAM on a stream that does not exist", frame(rstStream, 0, 9, u32(8))],
    ["CONTINUATION without HEADERS", frame(continuation, END_HEADERS, 1, hpack(request()))],
    [
      "something between HEADERS and CONTINUATION",
      Buffer.concat([frame(headers, END_STREAM, 1, hpack(request())), frame(ping, 0, 0, Buffer.alloc(8))]),
    ],
    ["a PUSH_PROMISE", frame(pushPromise, END_HEADERS, 1, Buffer.concat([u32(2), hpack(request())]))],
    ["SETTINGS on a stream", frame(settings, 0, 1)],
    ["SETTINGS of a wrong size", frame(settings, 0, 0, Buffer.alloc(5))],
    [
      "SETTINGS with a window beyond range",
      frame(settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), u32(0xffffffff)])),
    ],
    ["PING of a wrong size", frame(ping, 0, 0, Buffer.alloc(7))],
    ["WINDOW_UPDATE of 0 for the connection", frame(windowUpdate, 0, 0, u32(0))],
    ["WINDOW_UPDATE beyond range", frame(windowUpdate, 0, 0, u32(0x7fffffff))],
    ["a frame larger than allowed", frame(data, 0, 1, Buffer.alloc(20_000))],
    [
      "HPACK that is none",
      frame(headers, END_HEADERS | END_STREAM, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
    ],
    ["an HPACK index that does not exist", frame(headers, END_HEADERS | END_STREAM, 1, Buffer.from([0xfe]))],
    ["padding longer than its frame", frame(headers, END_HEADERS | END_STREAM | 8, 1, Buffer.from([200, 0]))],
  ])("%s", async (_title, bytes) => {
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(bytes);
    await connection.until(() => connection.closed || connection.find(goaway, 0) !== undefined);
    connection.socket.destroy();
    await bystander();
  });

  it("a lower stream after a higher one is not served", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    const late = request([["x-id", "late"]]);
    connection.send(headersFrames(5, request()), headersFrames(3, late));
    await connection.until(() => connection.find(goaway, 0) !== undefined);
    expect(observed.of("late")).toEqual([]);
    connection.socket.destroy();
    await bystander();
  });

  it("a client that says goodbye still gets its answers", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(fine, frame(goaway, 0, 0, Buffer.concat([u32(0), u32(0)])));
    await connection.until(() => connection.closed || connection.find(headers, 1) !== undefined);
    expect(await connection.outcome(1)).toBe(200);
    connection.socket.destroy();
  });
});

describe("HTTP/2: floods end the connection that sends them and no other", () => {
  const streams = (count: number, make: (stream: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, i) => make(2 * i + 1)));

  it.each<[string, Buffer, number]>([
    ["PING", Buffer.concat(Array.from({ length: 100 }, () => frame(ping, 0, 0, Buffer.alloc(8)))), 200],
    ["SETTINGS", Buffer.concat(Array.from({ length: 100 }, () => frame(settings, 0, 0))), 200],
    [
      "rapid reset",
      streams(5_000, (id) => Buffer.concat([headersFrames(id, request()), frame(rstStream, 0, id, u32(8))])),
      1,
    ],
    [
      "reset after the window is closed",
      streams(5_000, (id) =>
        Buffer.concat([headersFrames(id, post([]), false), frame(rstStream, 0, id, u32(8))]),
      ),
      1,
    ],
    [
      "streams reset by the server",
      streams(5_000, (id) =>
        Buffer.concat([headersFrames(id, post([]), false), frame(windowUpdate, 0, id, u32(0))]),
      ),
      1,
    ],
    ["malformed requests", streams(5_000, (id) => headersFrames(id, request([["connection", "close"]]))), 1],
  ])("%s", async (_title, bytes, times) => {
    const connection = await RawH2.open(sockets, gateway.port);
    await connection.flood(bytes, times);
    await connection.until(() => connection.closed || connection.find(goaway, 0) !== undefined);
    connection.socket.destroy();
    await bystander();
  });

  it("rapid reset reaches the backend only a few times", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    const flood = streams(5_000, (id) =>
      Buffer.concat([headersFrames(id, request([["x-id", "rapid"]])), frame(rstStream, 0, id, u32(8))]),
    );
    await connection.flood(flood, 1);
    await connection.until(() => connection.closed || connection.find(goaway, 0) !== undefined);
    await bystander();
    expect(observed.of("rapid").length).toBeLessThan(1_000);
  });

  it("CONTINUATION without end ends the connection", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(frame(headers, END_STREAM, 1, hpack(request())));
    const part = hpack([["a", "b".repeat(10_000)]]);
    expect(await connection.flood(frame(continuation, 0, 1, part), 10_000)).toBe(false);
    await bystander();
  });

  it("empty CONTINUATIONs without end end the connection", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(frame(headers, END_STREAM, 1, hpack(request())));
    const empty = Buffer.concat(Array.from({ length: 1_000 }, () => frame(continuation, 0, 1)));
    expect(await connection.flood(empty, 1_000)).toBe(false);
    await bystander();
  });

  it("a header that unpacks to far more than it is gets refused", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    // One large entry into the dynamic table, then that entry a thousand times.
    const name = Buffer.from([0x40, 1, 97]);
    const value = Buffer.concat([Buffer.from([0x7f, 0xa1, 0x1e]), Buffer.alloc(4_000, 98)]);
    const block = Buffer.concat([hpack(request()), name, value, Buffer.alloc(12_000, 0xbe)]);
    connection.send(frame(headers, END_HEADERS | END_STREAM, 1, block));
    const outcome = await connection.outcome(1);
    if (typeof outcome === "number") expect(outcome).toBe(431);
    connection.socket.destroy();
    await bystander();
  });

  it("more streams than allowed are refused, the others are served", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    await connection.until(() => connection.find(settings, 0) !== undefined);
    connection.send(streams(200, (id) => headersFrames(id, post([["x-id", "many"]]), false)));
    await connection.until(
      () => connection.closed || connection.frames.some(({ type }) => type === rstStream || type === goaway),
    );
    if (!connection.closed && connection.find(goaway, 0) === undefined) {
      connection.send(frame(data, END_STREAM, 1, Buffer.from("body")));
      expect(await connection.outcome(1)).toBe(200);
    }
    connection.socket.destroy();
    await bystander();
  });

  it("PRIORITY and unknown frames are only tolerated", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(
      frame(priority, 0, 1, Buffer.from([0, 0, 0, 0, 16])),
      frame(0x2a, 0, 0, Buffer.from("?")),
    );
    connection.send(headersFrames(1, request()));
    expect(await connection.outcome(1)).toBe(200);
    connection.socket.destroy();
  });

  it("a client that takes nothing of a thousand answers holds nobody else up", async () => {
    const connection = await RawH2.open(sockets, gateway.port);
    connection.send(frame(settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), u32(0)])));
    connection.send(streams(100, (id) => headersFrames(id, request())));
    await connection.until(
      () => connection.closed || connection.frames.filter(({ type }) => type === headers).length === 100,
    );
    await bystander();
    connection.socket.destroy();
  });
});
