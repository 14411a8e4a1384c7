import { once } from "node:events";
import { createServer as createHttp1Server } from "node:http";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { frame, frameType, headersFrames, u32 } from "../embedded/hostile/h2-frames.ts";
import { rawBackend } from "../embedded/http2/raw-backend.ts";
import { textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";
import type { Traits } from "./traits.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

/**
 * Where an answer over HTTP/2 ends: with its header, if that is all there is of it (RFC 9113, 8.1).
 */
export function describeHttp2Ends(create: CreateDataPlane, { resetCodes }: Traits): void {
  const stage = setStage(create);
  const open = (at: number): ClientHttp2Session => {
    const session = connect(`http://127.0.0.1:${at}`);
    session.on("error", () => {});
    stage.onRelease(() => session.destroy());
    return session;
  };

  test.each([
    ["of gRPC that is only a status", { "content-type": "application/grpc", "grpc-status": "5" }],
    ["without a body", { "content-length": "0" }],
  ])("an answer %s ends with its header, as the backend sent it", async (_name, fields) => {
    const server = createServer();
    server.on("stream", async (stream) => {
      await textOf(stream);
      stream.respond({ ":status": 200, ...fields }, { endStream: true });
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.listen(server)], { protocol: "h2c" }),
    ]);
    const session = open(plane.at(80));
    const request = { ":method": "POST", te: "trailers", "content-type": "application/grpc" };
    expect(await ending(session, request, "payload")).toEqual({
      status: 200,
      fields: expect.objectContaining(fields),
      endsWithHeader: true,
    });
  });

  test("an answer without a body that announces trailers is whole for an HTTP/1.1 client, too", async () => {
    const server = createServer();
    server.on("stream", (stream) => {
      stream.respond({ ":status": 200, "content-length": 0, trailer: "x-sum" }, { endStream: true });
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.listen(server)], { protocol: "h2c" }),
    ]);
    const socket = await stage.sockets.connect(plane.at(80));
    socket.write("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
    const answer = await textOf(socket);
    expect(answer).toMatch(/^content-length: 0\r$/im);
    expect(answer).not.toMatch(/^transfer-encoding:/im);
    expect(answer).toMatch(/\r\n\r\n$/);
  });

  test("an answer of length 0 from an HTTP/1.1 backend ends with its header", async () => {
    const server = createHttp1Server((_request, response) =>
      response.writeHead(201, { "content-length": 0 }).end(),
    );
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.listen(server)]),
    ]);
    const answer = await ending(open(plane.at(80)), { ":method": "PUT" }, "payload");
    expect(answer).toMatchObject({ status: 201, endsWithHeader: true });
  });

  const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR } = constants;
  test.each([
    ["CANCEL", NGHTTP2_CANCEL, resetCodes ? NGHTTP2_CANCEL : NGHTTP2_INTERNAL_ERROR],
    ["REFUSED_STREAM", NGHTTP2_REFUSED_STREAM, resetCodes ? NGHTTP2_REFUSED_STREAM : NGHTTP2_INTERNAL_ERROR],
    ["NO_ERROR", NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR],
  ])(
    "an answer that its backend resets with %s is never taken for a whole one",
    async (_name, said, seen) => {
      const onRequest = (stream: number, socket: Socket): void => {
        const header = headersFrames(stream, [[":status", "200"]], false);
        const begun = frame(frameType.data, 0, stream, Buffer.from("begun"));
        socket.write(Buffer.concat([header, begun, frame(frameType.rstStream, 0, stream, u32(said))]));
      };
      const { port: at } = await rawBackend(stage.sockets, { onRequest });
      const plane = await stage.start([
        http,
        shop,
        host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
        backend("b", [at], { protocol: "h2c" }),
      ]);
      const stream = open(plane.at(80)).request({ ":path": "/", ":authority": "shop.example" });
      stream.on("error", () => {}).resume();
      await once(stream, "close").catch(() => {});
      expect(stream.rstCode).toBe(seen);
    },
  );

  test("the proxy's own answer to HEAD ends with its header", async () => {
    const plane = await stage.start([http, shop, host(shop, "shop.example", [])]);
    const answer = await ending(open(plane.at(80)), { ":method": "HEAD" });
    expect(answer).toMatchObject({ status: 404, endsWithHeader: true });
  });
}

interface Ending {
  readonly status: number | undefined;
  readonly fields: IncomingHttpHeaders;
  readonly endsWithHeader: boolean;
}

async function ending(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string,
): Promise<Ending> {
  const stream = session.request(
    { ":path": "/", ":authority": "shop.example", ...headers },
    { endStream: body === undefined },
  );
  stream.resume().end(body);
  const [fields, flags] = (await once(stream, "response")) as [IncomingHttpHeaders, number];
  return {
    status: fields[":status"] as number | undefined,
    fields,
    endsWithHeader: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0,
  };
}
