import { describe, expect, test } from "vitest";
import {
  type AnswerHandler,
  ClientSession,
} from "../../../../src/dataplanes/embedded/http2/client-session.ts";
import { preface } from "../../../../src/dataplanes/embedded/http2/protocol.ts";
import type { Stream } from "../../../../src/dataplanes/embedded/http2/stream.ts";
import { defaultLimits, type Limits } from "../../../../src/dataplanes/embedded/limits/options.ts";
import { HeaderFields } from "../../../../src/dataplanes/embedded/message/header-fields.ts";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  frame,
  frameType,
  headersFrames,
  hpack,
  type SeenFrame,
  u32,
} from "../hostile/h2-frames.ts";
import { MemoryWire, settle } from "./memory-wire.ts";

const { data, headers, rstStream, settings, pushPromise, goaway, windowUpdate } = frameType;
const CANCEL = 8;
const REFUSED = 7;
const PROTOCOL_ERROR = 1;

/** A backend that says what the test says, and a client that writes down what it hears. */
class Conversation {
  readonly wire: MemoryWire = new MemoryWire();
  readonly session: ClientSession;
  readonly heard: string[] = [];
  gone = false;

  constructor(limits: Partial<Limits> = {}, firstSettings: Buffer = Buffer.alloc(0)) {
    this.session = new ClientSession(
      this.wire,
      { ...defaultLimits, ...limits },
      {
        onReady: () => {},
        onRoom: () => {},
        onGone: () => {
          this.gone = true;
        },
      },
    );
    this.session.read(frame(settings, 0, 0, firstSettings));
  }

  ask(options: { readonly method?: string; readonly body?: boolean } = {}): Stream {
    const method = options.method ?? "GET";
    const heard = (word: string): unknown => this.heard.push(word);
    const handler: AnswerHandler & { answered: boolean } = {
      answered: false,
      onInterim: (status) => heard(`informed ${status}`),
      onAnswer: (status) => {
        handler.answered = true;
        heard(String(status));
      },
      onData: (chunk) => heard(chunk.toString()),
      onEnd: (trailers) => heard(trailers === undefined ? "end" : `end ${trailers.flat.join("=")}`),
      onWritable: () => heard("writable"),
      onClosed: (code) => heard(`closed ${code ?? "well"}`),
    };
    return this.session.request(
      [":method", method, ":scheme", "http", ":authority", "a.example", ":path", "/"],
      ["x-a", "b"],
      { handler, endStream: options.body !== true, isHead: method === "HEAD" },
    );
  }

  says(...frames: readonly Buffer[]): void {
    for (const bytes of frames) this.session.read(bytes);
  }

  async sent(type: number, stream: number): Promise<SeenFrame | undefined> {
    await settle();
    return this.wire.frames(preface.length).find((seen) => seen.type === type && seen.stream === stream);
  }
}

const ok: readonly Field[] = [[":status", "200"]];

/** An answer of that many fields, ten bytes each as HTTP/1.1 writes them. */
function fields(count: number): Buffer {
  const many = Array.from({ length: count }, (_, i): Field => [`a${String(i).padStart(4, "0")}`, "b"]);
  return headersFrames(1, [...ok, ...many], true);
}

describe("HTTP/2 to backends: answers", () => {
  test.each([150, 3_000])("an answer with %i fields is taken, as from an HTTP/1.1 backend", (count) => {
    const talk = new Conversation();
    talk.ask();
    talk.says(fields(count));
    expect(talk.heard).toEqual(["200", "end", "closed well"]);
  });

  test("header, body and trailers arrive as the backend has sent them", () => {
    const talk = new Conversation();
    talk.ask();
    talk.says(headersFrames(1, ok, false), frame(data, 0, 1, Buffer.from("body")));
    talk.says(headersFrames(1, [["grpc-status", "0"]], true));
    expect(talk.heard).toEqual(["200", "body", "end grpc-status=0", "closed well"]);
    expect(talk.session.openStreams).toBe(0);
  });

  test("an answer may be a header alone, after others that only inform", () => {
    const talk = new Conversation();
    talk.ask();
    talk.says(headersFrames(1, [[":status", "103"]], false), headersFrames(1, [[":status", "100"]], false));
    talk.says(headersFrames(1, [...ok, ["grpc-status", "5"]], true));
    expect(talk.heard).toEqual(["informed 103", "informed 100", "200", "end", "closed well"]);
  });

  test("HEAD and 304 say a length and have no body", () => {
    const talk = new Conversation();
    talk.ask({ method: "HEAD" });
    talk.ask();
    talk.says(headersFrames(1, [...ok, ["content-length", "5"]], true));
    talk.says(
      headersFrames(
        3,
        [
          [":status", "304"],
          ["content-length", "5"],
        ],
        true,
      ),
    );
    expect(talk.heard).toEqual(["200", "end", "closed well", "304", "end", "closed well"]);
  });

  test("an answer before the end of the request is whole, also when the rest is refused", () => {
    const talk = new Conversation();
    talk.ask({ body: true }).write(Buffer.from("some"));
    talk.says(headersFrames(1, ok, true), frame(rstStream, 0, 1, u32(0)));
    expect(talk.heard).toEqual(["200", "end", "closed well"]);
  });

  test("an answer that waits for its reader is whole, also when the connection is lost", () => {
    const talk = new Conversation();
    const stream = talk.ask();
    stream.pause();
    talk.says(headersFrames(1, ok, false), frame(data, END_STREAM, 1, Buffer.from("late")));
    talk.session.onLost();
    expect(talk.heard).toEqual(["200"]);
    stream.resume();
    expect(talk.heard).toEqual(["200", "late", "end", "closed well"]);
  });

  test.each<[string, readonly Buffer[]]>([
    ["no status", [headersFrames(1, [["a", "b"]], true)]],
    ["two", [headersFrames(1, [...ok, ...ok], true)]],
    ["a status that is none", [headersFrames(1, [[":status", "2x0"]], true)]],
    ["101", [headersFrames(1, [[":status", "101"]], false)]],
    ["the end after information", [headersFrames(1, [[":status", "103"]], true)]],
    ["a request's pseudo-header", [headersFrames(1, [...ok, [":path", "/"]], true)]],
    ["a pseudo-header behind the others", [headersFrames(1, [["a", "b"], ...ok], true)]],
    ["Connection", [headersFrames(1, [...ok, ["connection", "close"]], true)]],
    ["a line break", [headersFrames(1, [...ok, ["a", "b\r\nc: d"]], true)]],
    ["two lengths", [headersFrames(1, [...ok, ["content-length", "0"], ["content-length", "0"]], true)]],
    [
      "less than its length",
      [headersFrames(1, [...ok, ["content-length", "5"]], false), frame(data, END_STREAM, 1)],
    ],
    [
      "more than its length",
      [headersFrames(1, [...ok, ["content-length", "1"]], false), frame(data, 0, 1, Buffer.from("ab"))],
    ],
    [
      "a body behind 204",
      [headersFrames(1, [[":status", "204"]], false), frame(data, 0, 1, Buffer.from("ab"))],
    ],
    ["DATA before the header", [frame(data, END_STREAM, 1, Buffer.from("ab"))]],
    ["trailers with a pseudo-header", [headersFrames(1, ok, false), headersFrames(1, ok, true)]],
    ["trailers that are not the end", [headersFrames(1, ok, false), headersFrames(1, [["a", "b"]], false)]],
    ["more fields than an HTTP/1.1 header of the same limit has room for", [fields(8_000)]],
  ])("%s ends the stream, and no other", async (_title, frames) => {
    const talk = new Conversation();
    talk.ask();
    talk.ask();
    talk.says(...frames);
    expect((await talk.sent(rstStream, 1))?.payload.readUInt32BE(0)).toBe(PROTOCOL_ERROR);
    expect(talk.heard.at(-1)).toBe(`closed ${PROTOCOL_ERROR}`);
    expect(talk.heard).not.toContain("end");
    talk.says(headersFrames(3, ok, true));
    expect(talk.heard.slice(-3)).toEqual(["200", "end", "closed well"]);
  });

  test.each<[string, Buffer]>([
    ["a promise to push", frame(pushPromise, END_HEADERS, 1, Buffer.concat([u32(2), hpack(ok)]))],
    ["an answer that nobody asked for", headersFrames(9, ok, true)],
    ["DATA that nobody asked for", frame(data, 0, 9, Buffer.from("x"))],
    ["a header block that is none", frame(headers, END_HEADERS, 1, Buffer.from([0xfe]))],
    ["permission to push", frame(settings, 0, 0, Buffer.concat([Buffer.from([0, 2]), u32(1)]))],
    ["a window beyond range", frame(windowUpdate, 0, 0, u32(0x7fffffff))],
  ])("%s ends the connection", async (_title, bytes) => {
    const talk = new Conversation();
    talk.ask();
    talk.says(bytes);
    expect(await talk.sent(goaway, 0)).toBeDefined();
    expect(talk.heard.at(-1)).toMatch(/^closed \d/);
    expect(talk.gone).toBe(true);
    expect(talk.session.hasRoom).toBe(false);
  });
});

describe("HTTP/2 to backends: streams", () => {
  test("there are as many streams as the backend takes", () => {
    const talk = new Conversation({}, Buffer.concat([Buffer.from([0, 3]), u32(2)]));
    talk.ask();
    expect(talk.session.hasRoom).toBe(true);
    talk.ask();
    expect(talk.session.hasRoom).toBe(false);
    talk.says(headersFrames(1, ok, true));
    expect(talk.session.hasRoom).toBe(true);
  });

  test("refused streams say so, one by one or by a goodbye", () => {
    const talk = new Conversation();
    for (let i = 0; i < 3; i++) talk.ask();
    talk.says(frame(rstStream, 0, 1, u32(REFUSED)));
    expect(talk.heard).toEqual([`closed ${REFUSED}`]);
    talk.says(frame(goaway, 0, 0, Buffer.concat([u32(3), u32(0)])));
    expect(talk.heard).toEqual([`closed ${REFUSED}`, `closed ${REFUSED}`]);
    expect(talk.session.hasRoom).toBe(false);
    talk.says(headersFrames(3, ok, true));
    expect(talk.heard.slice(2)).toEqual(["200", "end", "closed well"]);
    expect(talk.wire.ended).toBe(true);
  });

  test("a cancelled stream is forgotten, whatever still comes of it", async () => {
    const talk = new Conversation();
    talk.ask().reset(CANCEL);
    talk.says(headersFrames(1, ok, false), frame(data, END_STREAM, 1, Buffer.from("late")));
    expect((await talk.sent(rstStream, 1))?.payload.readUInt32BE(0)).toBe(CANCEL);
    expect(talk.heard).toEqual([`closed ${CANCEL}`]);
    expect(await talk.sent(goaway, 0)).toBeUndefined();
  });

  test("a body waits for the backend's window, its trailers for the body", async () => {
    const talk = new Conversation({}, Buffer.concat([Buffer.from([0, 4]), u32(3)]));
    const stream = talk.ask({ body: true });
    expect(stream.write(Buffer.from("abcdef"))).toBe(false);
    talk.says(frame(windowUpdate, 0, 1, u32(3)));
    expect(talk.heard).toEqual(["writable"]);
    stream.write(Buffer.from("gh"));
    stream.end(new HeaderFields(["x-sum", "42"]));
    await settle();
    const sentData = (): string =>
      talk.wire
        .frames(preface.length)
        .filter(({ type }) => type === data)
        .map(({ payload }) => payload.toString())
        .join("");
    expect(sentData()).toBe("abcdef");
    talk.says(frame(windowUpdate, 0, 1, u32(10)));
    await settle();
    expect(sentData()).toBe("abcdefgh");
    expect(
      talk.wire
        .frames(preface.length)
        .filter(({ type }) => type === headers)
        .at(-1)?.flags,
    ).toBe(END_HEADERS | END_STREAM);
  });
});
