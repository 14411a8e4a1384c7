import { describe, expect, test } from "vitest";
import {
  END_STREAM,
  type Field,
  frame,
  frameType,
  headersFrames,
  preface,
  u32,
} from "../hostile/h2-frames.ts";
import { EchoServer, settle } from "./memory-wire.ts";

/** What may come on a stream that is over, and on one that never was (RFC 9113, 5.1 and 5.1.1). */

const { data, settings, rstStream, goaway, headers, priority } = frameType;
const PROTOCOL_ERROR = 1;
const STREAM_CLOSED = 5;
const CANCEL = 8;

const get: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/a"],
  [":authority", "a.example"],
];
const post: readonly Field[] = [[":method", "POST"], ...get.slice(1)];

function greeted(): EchoServer {
  const server = new EchoServer();
  server.session.read(Buffer.concat([preface, frame(settings, 0, 0)]));
  return server;
}

/** Of the GOAWAY that ends the connection. */
async function failureOf(server: EchoServer): Promise<number | undefined> {
  await settle();
  return server.wire
    .frames()
    .find(({ type }) => type === goaway)
    ?.payload.readUInt32BE(4);
}

describe("HTTP/2: a new stream with a lower number", () => {
  test.each([
    ["than the last", [5], 3],
    ["than several, in a gap between them", [1, 9, 11], 7],
  ])("%s is a connection error", async (_name, opened, late) => {
    const server = greeted();
    for (const id of opened) server.session.read(headersFrames(id, get));
    server.session.read(headersFrames(late, get));
    expect(await failureOf(server)).toBe(PROTOCOL_ERROR);
    expect(server.requests).toHaveLength(opened.length);
  });
});

describe("HTTP/2: a stream that is over", () => {
  test.each([
    ["HEADERS", headersFrames(1, get)],
    ["DATA", frame(data, END_STREAM, 1, Buffer.from("more"))],
  ])("%s after its client has ended it is a connection error", async (_name, late) => {
    const server = greeted();
    server.session.read(headersFrames(1, get));
    await settle();
    server.session.read(late);
    expect(await failureOf(server)).toBe(STREAM_CLOSED);
  });

  test.each([
    ["HEADERS", headersFrames(1, [["x-sum", "1"]])],
    ["DATA", frame(data, END_STREAM, 1, Buffer.from("more"))],
  ])("%s after its client has reset it is a connection error", async (_name, late) => {
    const server = greeted();
    server.session.read(headersFrames(1, post, false));
    server.session.read(frame(rstStream, 0, 1, u32(CANCEL)));
    server.session.read(late);
    expect(await failureOf(server)).toBe(STREAM_CLOSED);
  });

  test("what was on its way when this side ended it is no error, and later streams are served", async () => {
    const server = greeted();
    server.session.read(headersFrames(1, post, false));
    server.streamAt(0)?.reset(CANCEL);
    // Malformed: refused before it is anybody's request.
    server.session.read(headersFrames(3, [[":bad", "1"], ...post], false));
    for (const id of [1, 3]) {
      server.session.read(frame(data, 0, id, Buffer.from("on its way")));
      server.session.read(headersFrames(id, [["x-sum", "1"]]));
    }
    server.session.read(headersFrames(5, get));
    expect(await failureOf(server)).toBeUndefined();
    expect(server.requests.map(({ outcome }) => outcome)).toEqual([CANCEL, "done"]);
    server.session.destroy();
  });
});

describe("HTTP/2: a stream that depends on itself", () => {
  const itself = Buffer.concat([u32(1), Buffer.from([16])]);
  const block = headersFrames(1, get).subarray(9);
  test.each([
    ["by HEADERS", frame(headers, END_STREAM | 4 | 32, 1, Buffer.concat([itself, block]))],
    ["by PRIORITY", frame(priority, 0, 1, itself)],
  ])("%s is a connection error", async (_name, bytes) => {
    const server = greeted();
    server.session.read(bytes);
    expect(await failureOf(server)).toBe(PROTOCOL_ERROR);
  });
});
