import {
  type ReceivedRequest,
  RequestParser,
  type RequestSink,
} from "../../../../src/dataplanes/embedded/http1/request-parser.ts";
import type { HeaderFields } from "../../../../src/dataplanes/embedded/message/header-fields.ts";
import { parseTarget } from "../../../../src/dataplanes/embedded/message/request-target.ts";

export const HEADER_BYTES: number = 16 * 1024;

export interface ReadRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly host: string | undefined;
  readonly fields: readonly string[];
  readonly keepAlive: boolean;
  readonly invalid: string | undefined;
  body: string;
  trailers: readonly string[];
  complete: boolean;
}

export interface Reading {
  readonly requests: readonly ReadRequest[];
  readonly error: number | undefined;
  /** In the middle of a head or a body. */
  readonly begun: boolean;
}

/**
 * Everything that the parser makes of a connection on which these pieces come, one request answered
 * as soon as it is read.
 */
export function readRequests(pieces: readonly Buffer[], headerBytes: number = HEADER_BYTES): Reading {
  const requests: ReadRequest[] = [];
  const sink: RequestSink = {
    onRequest(request: ReceivedRequest) {
      requests.push({
        method: request.method,
        target: request.target,
        version: request.version,
        host: request.host,
        fields: [...request.headers.flat],
        keepAlive: request.keepAlive,
        invalid: request.invalid ?? invalidTarget(request),
        body: "",
        trailers: [],
        complete: !request.hasBody && request.invalid === undefined,
      });
    },
    onBody(piece: Buffer) {
      last().body += piece.toString("latin1");
    },
    onEnd(trailers: HeaderFields | undefined) {
      last().trailers = [...(trailers?.flat ?? [])];
      last().complete = true;
    },
  };
  const last = (): ReadRequest => requests.at(-1) as ReadRequest;
  /**
   * As on a connection: nothing is read behind a request that was to be the last, or that is
   * refused.
   */
  const isLast = (): boolean =>
    requests.length > 0 && (last().invalid !== undefined || (last().complete && !last().keepAlive));
  const parser = new RequestParser(sink, headerBytes);
  for (const piece of pieces) {
    let at = 0;
    while (at < piece.length && parser.error === undefined && !isLast()) at = parser.read(piece, at);
  }
  return { requests, error: parser.error?.status, begun: parser.begun };
}

function invalidTarget({ target }: ReceivedRequest): string | undefined {
  const parsed = parseTarget(target);
  return "invalid" in parsed ? parsed.invalid : undefined;
}

export function cut(bytes: Buffer, ...places: readonly number[]): readonly Buffer[] {
  const edges = [0, ...places, bytes.length];
  return edges.slice(1).map((to, index) => bytes.subarray(edges[index], to));
}

export function byteByByte(bytes: Buffer): readonly Buffer[] {
  return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
}
