/**
 * Counts the bodies of requests whose length is not announced: Envoy has no filter that would do so
 * exactly and without holding the body back. Envoy keeps each piece until it is let through here;
 * if this server is gone, it answers 5xx.
 */

import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { answerTooLarge, goesOn, LIMIT_FIELD, readBodyPiece } from "../messages/body-count.ts";
import { frame, GrpcFrameReader } from "../wire/grpc-frames.ts";

/** Of what Envoy has read from a client at a time, with room to spare. */
const LARGEST_PIECE = 16 * 1024 * 1024;

/** Serves one stream, which is one request. */
export function countBody(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  const maxBytes = Number(headers[LIMIT_FIELD] ?? Number.NaN);
  const reader = new GrpcFrameReader(LARGEST_PIECE);
  let count = 0;
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => {
    if (!stream.destroyed) stream.sendTrailers({ "grpc-status": 0 });
  });
  stream.on("end", () => stream.end());
  stream.on("data", (chunk: Buffer) => {
    try {
      for (const bytes of reader.push(chunk)) {
        count += readBodyPiece(bytes) ?? Number.NaN;
        // Also when either of them is no number.
        stream.write(frame(count <= maxBytes ? goesOn : answerTooLarge));
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      stream.close();
    }
  });
}
