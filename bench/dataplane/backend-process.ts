/**
 * A backend in a process of its own: gRPC (h2c with trailers) on one port, and HTTP/1.1 on another
 * where nginx is not there to do it better. Tells how many requests it has answered when asked.
 */

import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:http2";

const [port = "0", httpPort] = process.argv.slice(2);
const answered = { grpc: 0, http: 0 };

const messages = { small: message(100), large: message(16 * 1024) };

createServer()
  .on("stream", (stream, headers) => {
    stream.on("error", () => {}).resume();
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(headers[":path"]?.endsWith("/Large") ? messages.large : messages.small);
    answered.grpc++;
  })
  .listen(Number(port), "127.0.0.1", () => process.send?.({ ready: true }));

if (httpPort !== undefined) {
  const bodies = { small: Buffer.alloc(100, "x"), large: Buffer.alloc(16 * 1024, "x") };
  createHttpServer({ keepAliveTimeout: 300_000 }, (request, response) => {
    const body = request.url?.endsWith("/large") ? bodies.large : bodies.small;
    response.writeHead(200, { "content-type": "text/plain", "content-length": body.length }).end(body);
    answered.http++;
  }).listen(Number(httpPort), "127.0.0.1");
}

process.on("message", () => process.send?.(answered));
process.once("disconnect", () => process.exit());

function message(length: number): Buffer {
  const bytes = Buffer.alloc(5 + length, "x");
  bytes.writeUInt8(0, 0);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}
