import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  type Field,
  frame,
  frameType,
  headersFrames,
  hpack,
  preface,
  u32,
} from "../hostile/h2-frames.ts";
import { EchoServer, settle } from "./memory-wire.ts";

const { data, headers, priority, rstStream, settings, ping, goaway, windowUpdate, continuation } = frameType;
const PADDED = 8;
const PRIORITY = 32;

const get: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/a"],
  [":authority", "a.example"],
];
const post: readonly Field[] = [[":method", "POST"], ...get.slice(1)];
const hello: readonly Buffer[] = [preface, frame(settings, 0, 0)];
const setting = (id: number, value: number): Buffer => Buffer.concat([Buffer.from([0, id]), u32(value)]);
const greeted = (limits = {}): EchoServer => {
  const server = new EchoServer(limits);
  server.session.read(Buffer.concat(hello));
  return server;
};
const dataOf = (server: EchoServer, stream: number): string =>
  server.wire
    .frames()
    .filter((seen) => seen.type === data && seen.stream === stream)
    .map(({ payload }) => payload.toString("latin1"))
    .join("");
const find = (server: EchoServer, type: number, stream: number): Buffer | undefined =>
  server.wire.frames().find((seen) => seen.type === type && seen.stream === stream)?.payload;

describe("HTTP/2 sessions: however the bytes are cut, the outcome is the same", () => {
  const block = hpack([...post, ["x-long", "y".repeat(100)]]);
  const padded = Buffer.concat([Buffer.from([3]), Buffer.from("padded"), Buffer.alloc(3)]);
  const prioritised = Buffer.concat([Buffer.from([2, 0, 0, 0, 0, 16]), hpack(get), Buffer.alloc(2)]);
  const conversation = Buffer.concat([
    ...hello,
    headersFrames(1, get),
    frame(headers, 0, 3, block.subarray(0, 20)),
    frame(continuation, 0, 3, block.subarray(20, 60)),
    frame(continuation, END_HEADERS, 3, block.subarray(60)),
    frame(ping, 0, 0, Buffer.from("12345678")),
    frame(data, 0, 3, Buffer.from("one, ")),
    frame(priority, 0, 5, Buffer.alloc(5)),
    frame(data, PADDED, 3, padded),
    frame(headers, END_HEADERS | END_STREAM | PADDED | PRIORITY, 5, prioritised),
    frame(0x77, 0, 0, Buffer.from("unknown")),
    headersFrames(3, [["x-sum", "42"]], true),
    headersFrames(7, [[":bad", "1"], ...get]),
    headersFrames(9, post, false),
    frame(rstStream, 0, 9, u32(8)),
    frame(settings, ACK, 0),
    headersFrames(11, [...post, ["content-length", "3"]], false),
    frame(data, END_STREAM, 11, Buffer.from("abc")),
  ]);

  async function outcomeOf(pieces: readonly Buffer[]): Promise<unknown> {
    const server = new EchoServer();
    for (const piece of pieces) server.session.read(piece);
    await settle();
    const { requests, wire } = server;
    server.session.destroy();
    return {
      requests,
      frames: wire
        .frames()
        .map(({ type, flags, stream, payload }) => [type, flags, stream, payload.toString("hex")]),
    };
  }

  test("bytes mean the same whole, in two pieces at every boundary, and one by one", async () => {
    // Encodings are learnt once for the thread: not before the third time is the answer the same to
    // the byte.
    for (let round = 0; round < 3; round++) await outcomeOf([conversation]);
    const whole = await outcomeOf([conversation]);
    expect(whole).toMatchObject({
      requests: [
        { path: "/a", outcome: "done" },
        { body: "one, padded", trailers: ["x-sum", "42"], outcome: "done" },
        { path: "/a", outcome: "done" },
        { outcome: 8 },
        { body: "abc", outcome: "done" },
      ],
    });
    for (let at = 1; at < conversation.length; at++) {
      expect(await outcomeOf([conversation.subarray(0, at), conversation.subarray(at)])).toEqual(whole);
    }
    expect(await outcomeOf([...conversation].map((byte) => Buffer.from([byte])))).toEqual(whole);
  });
});

describe("HTTP/2 sessions: random frames", () => {
  const payload = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(
      hpack(get),
      hpack(post),
      hpack([["x-trailer", "1"]]),
      u32(0),
      u32(1),
      u32(70_000),
      Buffer.alloc(8),
    ),
  );
  const randomFrame = fc
    .tuple(
      fc.oneof(
        { weight: 8, arbitrary: fc.integer({ min: 0, max: 9 }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 255 }) },
      ),
      fc.oneof(fc.constantFrom(0, 1, 4, 5), fc.integer({ min: 0, max: 255 })),
      fc.oneof(fc.constantFrom(0, 1, 3, 5, 7), fc.integer({ min: 0, max: 0xffff_ffff })),
      payload,
    )
    .map(([type, flags, stream, bytes]) => frame(type, flags, stream, bytes));

  test("neither throw nor leave anything behind", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(randomFrame, { maxLength: 40 }), fc.boolean(), async (frames, inPieces) => {
        const server = greeted();
        for (const bytes of frames) {
          if (!inPieces) server.session.read(bytes);
          else for (const byte of bytes) server.session.read(Buffer.from([byte]));
        }
        await settle();
        // Whatever was written is a sequence of whole frames.
        const written = server.wire.frames();
        expect(written.reduce((sum, seen) => sum + 9 + seen.payload.length, 0)).toBe(
          server.wire.written.length,
        );
        server.session.onLost();
        expect(server.requests.filter(({ outcome }) => outcome === undefined)).toEqual([]);
      }),
      { numRuns: 1_500 },
    );
  });
});

describe("HTTP/2 sessions: flow control", () => {
  test("answers wait for the stream's window, for the connection's, and for the socket", async () => {
    const server = greeted();
    server.session.read(frame(settings, 0, 0, setting(4, 10)));
    server.session.read(
      Buffer.concat([headersFrames(1, post, false), frame(data, END_STREAM, 1, Buffer.alloc(100, "x"))]),
    );
    await settle();
    expect(dataOf(server, 1)).toHaveLength(10);
    server.session.read(frame(windowUpdate, 0, 1, u32(15)));
    await settle();
    expect(dataOf(server, 1)).toHaveLength(25);
    // A window that shrinks below zero has to be filled up first.
    server.session.read(frame(settings, 0, 0, setting(4, 0)));
    server.session.read(frame(windowUpdate, 0, 1, u32(10)));
    await settle();
    expect(dataOf(server, 1)).toHaveLength(25);
    server.session.read(frame(settings, 0, 0, setting(4, 200)));
    await settle();
    expect(dataOf(server, 1)).toHaveLength(100);
    expect(server.requests[0]?.outcome).toBe("done");
  });

  test("streams take turns at the connection's window", async () => {
    const server = greeted();
    server.session.read(frame(settings, 0, 0, setting(4, 1_000_000)));
    const body = frame(data, 0, 1, Buffer.alloc(16_000, "x"));
    const asFrom = (stream: number): Buffer => {
      const own = Buffer.from(body);
      own.writeUInt32BE(stream, 5);
      return own;
    };
    for (const stream of [1, 3]) {
      server.session.read(headersFrames(stream, post, false));
      for (let part = 0; part < 5; part++) server.session.read(asFrom(stream));
      server.session.read(frame(data, END_STREAM, stream, Buffer.from("end")));
    }
    await settle();
    expect(dataOf(server, 1).length + dataOf(server, 3).length).toBe(65_535);
    server.session.read(frame(windowUpdate, 0, 0, u32(32_000)));
    await settle();
    expect(dataOf(server, 1).length).toBeGreaterThan(65_535);
    expect(dataOf(server, 3).length).toBeGreaterThan(10_000);
    server.session.read(frame(windowUpdate, 0, 0, u32(1_000_000)));
    await settle();
    expect([dataOf(server, 1).length, dataOf(server, 3).length]).toEqual([80_003, 80_003]);
    expect(server.requests.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
  });

  test("a client that takes no answers is not read from until it does", async () => {
    const server = greeted();
    server.wire.backlog = 10_000_000;
    server.session.read(headersFrames(1, get));
    await settle();
    expect(server.wire.reading).toBe(false);
    server.wire.backlog = 0;
    server.session.onWritable();
    expect(server.wire.reading).toBe(true);
    server.session.destroy();
  });

  test("a reader that takes everything gives the windows back", async () => {
    const server = greeted();
    for (const stream of [1, 3, 5]) {
      server.session.read(headersFrames(stream, post, false));
      for (let part = 0; part < 30; part++) {
        server.session.read(frame(data, 0, stream, Buffer.alloc(16_384)));
      }
    }
    await settle();
    const given = (wanted: (stream: number) => boolean): number =>
      server.wire
        .frames()
        .filter(({ type, stream }) => type === windowUpdate && wanted(stream))
        .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
    expect(given((stream) => stream > 0)).toBeGreaterThanOrEqual(3 * 30 * 16_384 - 3 * 128 * 1024);
    expect(given((stream) => stream === 0)).toBeGreaterThanOrEqual(3 * 30 * 16_384 - 512 * 1024);
    expect(find(server, goaway, 0)).toBeUndefined();
    server.session.destroy();
  });

  test("what a paused reader is sent stays within the window", async () => {
    const { server, stream } = await pausedUpload();
    for (let part = 0; part < 17; part++) server.session.read(frame(data, 0, 1, Buffer.alloc(16_384)));
    await settle();
    expect(find(server, rstStream, 1)?.readUInt32BE(0)).toBe(3);
    expect(stream.closed).toBe(true);
    server.session.destroy();
  });

  test("a paused reader gets everything in order when it goes on, one byte at a time or not", async () => {
    const { server, stream, read } = await pausedUpload();
    const text = Array.from({ length: 3_000 }, (_, i) => String(i)).join(",");
    for (const char of text) server.session.read(frame(data, 0, 1, Buffer.from(char)));
    server.session.read(frame(data, END_STREAM, 1));
    expect(read()).toBe("");
    stream.resume();
    expect(read()).toBe(`${text}!`);
    server.session.destroy();
  });

  async function pausedUpload(): Promise<{
    server: EchoServer;
    stream: ReturnType<typeof streamOf>;
    read: () => string;
  }> {
    const server = greeted();
    server.session.read(headersFrames(1, post, false));
    const stream = streamOf(server);
    let text = "";
    stream.handler = {
      onData: (chunk) => {
        text += chunk.toString();
      },
      onEnd: () => {
        text += "!";
      },
      onWritable: () => {},
      onClosed: () => {},
    };
    stream.pause();
    return { server, stream, read: () => text };
  }

  function streamOf(server: EchoServer): NonNullable<ReturnType<EchoServer["streamAt"]>> {
    const stream = server.streamAt(0);
    if (stream === undefined) throw new Error("no stream");
    return stream;
  }
});

describe("HTTP/2 sessions: frames of no use", () => {
  const pinging = frame(ping, 0, 0, Buffer.alloc(8));
  const calmed = (server: EchoServer): boolean => find(server, goaway, 0)?.readUInt32BE(4) === 11;

  test("a peer that measures the connection by pings as it sends and receives goes on", async () => {
    const server = greeted({ pings: 5 });
    for (let id = 1; id < 200; id += 2) {
      server.session.read(Buffer.concat([headersFrames(id, post, false), pinging]));
      server.session.read(Buffer.concat([frame(data, END_STREAM, id, Buffer.from("piece")), pinging]));
      await settle();
    }
    expect(calmed(server)).toBe(false);
    expect(server.requests.filter(({ outcome }) => outcome === "done")).toHaveLength(100);
    expect(server.wire.frames().filter(({ type }) => type === ping)).toHaveLength(200);
  });

  test("resets behind answers do not count against a busy peer", async () => {
    const server = greeted();
    for (let id = 1; id < 2 * 5_000; id += 2) {
      server.session.read(headersFrames(id, get));
      if (id % 501 === 0) await settle();
      server.session.read(frame(windowUpdate, 0, id, u32(1)));
    }
    await settle();
    expect(calmed(server)).toBe(false);
  });

  test("pings alone are too many soon", async () => {
    const server = greeted({ pings: 5 });
    for (let sent = 0; sent < 5; sent++) server.session.read(pinging);
    expect(calmed(server)).toBe(false);
    server.session.read(pinging);
    await settle();
    expect(calmed(server)).toBe(true);
  });
});

describe("HTTP/2 sessions: taking leave", () => {
  test("streams on the way are served, later ones are not, then the connection ends", async () => {
    const server = greeted();
    server.session.read(headersFrames(1, post, false));
    server.session.leave();
    await settle();
    expect(find(server, goaway, 0)?.readUInt32BE(0)).toBe(0x7fffffff);
    server.session.read(headersFrames(3, get));
    const pinged = find(server, ping, 0);
    server.session.read(frame(ping, ACK, 0, pinged ?? Buffer.alloc(8)));
    server.session.read(headersFrames(5, post, false));
    server.session.read(frame(data, END_STREAM, 5, Buffer.from("too late")));
    await settle();
    expect(
      server.wire
        .frames()
        .filter(({ type }) => type === goaway)
        .at(-1)
        ?.payload.readUInt32BE(0),
    ).toBe(3);
    expect(server.wire.ended).toBe(false);
    server.session.read(frame(data, END_STREAM, 1, Buffer.from("late")));
    await settle();
    expect(dataOf(server, 1)).toBe("late");
    expect(server.requests.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
    expect(server.wire.ended).toBe(true);
  });

  test("a header list beyond the limit is answered with 431, the next request is served", async () => {
    const server = greeted({ headerBytes: 2_000 });
    server.session.read(headersFrames(1, [...get, ["x-long", "y".repeat(3_000)]]));
    server.session.read(headersFrames(3, get));
    await settle();
    expect(find(server, headers, 1)?.includes("431")).toBe(true);
    expect(server.requests.map(({ outcome }) => outcome)).toEqual(["done"]);
    server.session.destroy();
  });

  test("empty DATA without end, and PRIORITY without end, are too much some day", async () => {
    for (const idle of [frame(data, 0, 1), frame(priority, 0, 1, Buffer.alloc(5)), frame(0x33, 0, 0)]) {
      const server = greeted();
      server.session.read(headersFrames(1, post, false));
      for (let i = 0; i < 10_000 && !server.wire.ended; i++) server.session.read(idle);
      expect(server.wire.frames().at(-1)?.payload.readUInt32BE(4)).toBe(11);
      expect(server.requests[0]?.outcome).toBe(11);
    }
  });

  test("a preface that is none ends the connection", () => {
    const server = new EchoServer();
    server.session.read(Buffer.from("GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
    expect(server.wire.ended).toBe(true);
  });
});
