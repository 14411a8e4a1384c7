import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { backend, forwardTo, host, listener, port, rule } from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";
import { Sockets } from "../../support/sockets.ts";
import { frame, frameType, headersFrames, u32 } from "../hostile/h2-frames.ts";
import { rawBackend } from "./raw-backend.ts";

/**
 * Error codes of streams, from one side of the proxy to the other (gRPC over HTTP2, "HTTP2
 * Transport Mapping").
 */

const {
  NGHTTP2_CANCEL: CANCEL,
  NGHTTP2_REFUSED_STREAM: REFUSED_STREAM,
  NGHTTP2_ENHANCE_YOUR_CALM: ENHANCE_YOUR_CALM,
  NGHTTP2_INTERNAL_ERROR: INTERNAL_ERROR,
  NGHTTP2_NO_ERROR: NO_ERROR,
  NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR,
  NGHTTP2_INADEQUATE_SECURITY: INADEQUATE_SECURITY,
  NGHTTP2_HTTP_1_1_REQUIRED: HTTP_1_1_REQUIRED,
} = constants;

const http = port(80);
const shop = listener("shop", http, "shop.example");
let sockets: Sockets;
let plane: PlaneUnderTest;
let session: ClientHttp2Session;
/** What the backend does with a request. */
let serve: (stream: number, socket: Socket) => void;

beforeEach(async () => {
  sockets = new Sockets();
  const { port: at } = await rawBackend(sockets, { onRequest: (stream, socket) => serve(stream, socket) });
  plane = await PlaneUnderTest.start(
    (options) => createEmbeddedDataPlane({ ...options, workers: 0 }),
    [
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at], { protocol: "h2c" }),
    ],
  );
  session = connect(`http://127.0.0.1:${plane.at(80)}`);
  session.on("error", () => {});
});

afterEach(async () => {
  session.destroy();
  await plane.close();
  await sockets.release();
});

const reset = (stream: number, code: number): Buffer => frame(frameType.rstStream, 0, stream, u32(code));

/** The beginning of an answer. */
function begun(stream: number): Buffer {
  const header = headersFrames(stream, [[":status", "200"]], false);
  return Buffer.concat([header, frame(frameType.data, 0, stream, Buffer.from("begun"))]);
}

async function closeCodeOf(stream: ClientHttp2Stream): Promise<number | undefined> {
  await new Promise((resolve) => stream.once("close", resolve));
  return stream.rstCode;
}

function request(fields: IncomingHttpHeaders = {}): ClientHttp2Stream {
  const stream = session.request({
    ":path": "/",
    ":authority": "shop.example",
    ":method": "POST",
    ...fields,
  });
  stream.on("error", () => {});
  return stream;
}

describe("a backend that resets a stream", () => {
  test.each([
    [CANCEL, CANCEL],
    [ENHANCE_YOUR_CALM, ENHANCE_YOUR_CALM],
    [REFUSED_STREAM, REFUSED_STREAM],
    // Half an answer that ended without an error could be taken for a whole one.
    [NO_ERROR, INTERNAL_ERROR],
    [PROTOCOL_ERROR, INTERNAL_ERROR],
    // Of the backend's connection, not of the client's.
    [INADEQUATE_SECURITY, INTERNAL_ERROR],
    [HTTP_1_1_REQUIRED, INTERNAL_ERROR],
  ])("in the middle of its answer with code %i: the client sees %i", async (said, seen) => {
    serve = (stream, socket) => socket.write(Buffer.concat([begun(stream), reset(stream, said)]));
    const stream = request();
    stream.end().resume();
    expect(await closeCodeOf(stream)).toBe(seen);
  });

  test.each([
    [CANCEL, 1],
    [ENHANCE_YOUR_CALM, 8],
    [REFUSED_STREAM, 14],
    [INADEQUATE_SECURITY, 7],
    [PROTOCOL_ERROR, 13],
    [INTERNAL_ERROR, 13],
  ])("before its answer with code %i: gRPC's status is %i", async (said, status) => {
    serve = (stream, socket) => socket.write(reset(stream, said));
    const stream = request({ "content-type": "application/grpc", te: "trailers" });
    stream.end("payload").resume();
    const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders];
    expect(answer["grpc-status"]).toBe(String(status));
  });

  test("by losing its connection says nothing about who cancelled", async () => {
    serve = (stream, socket) => socket.write(begun(stream), () => socket.destroy());
    const stream = request();
    stream.end().resume();
    expect(await closeCodeOf(stream)).toBe(INTERNAL_ERROR);
  });
});

describe("a client that cancels", () => {
  test.each([
    ["before its body has ended", false],
    ["in the middle of the answer", true],
  ])("%s: the backend sees CANCEL", async (_name, ended) => {
    const seen = Promise.withResolvers<number>();
    serve = (stream, socket) => {
      socket.write(begun(stream));
      let bytes = Buffer.alloc(0);
      socket.on("data", (chunk) => {
        bytes = Buffer.concat([bytes, chunk]);
        const at = bytes.indexOf(
          Buffer.concat([Buffer.from([0, 0, 4, frameType.rstStream, 0]), u32(stream)]),
        );
        if (at >= 0 && bytes.length >= at + 13) seen.resolve(bytes.readUInt32BE(at + 9));
      });
    };
    const stream = request();
    stream.write("some");
    if (ended) stream.end();
    await once(stream, "data");
    stream.close(CANCEL);
    expect(await seen.promise).toBe(CANCEL);
  });
});
