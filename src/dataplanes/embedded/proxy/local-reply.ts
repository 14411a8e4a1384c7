import { grpcStatusOf } from "../http2/reset-codes.ts";
import type { Exchange } from "../message/exchange.ts";
import { isGrpc } from "../message/grpc.ts";
import { HeaderFields } from "../message/header-fields.ts";
import type { RoutedRequest } from "./routed-request.ts";

/**
 * What a gRPC client makes of an HTTP status, said in its own words so that every client library
 * agrees.
 */
const grpcStatus: ReadonlyMap<number, number> = new Map([
  [400, 13],
  [401, 16],
  [403, 7],
  [404, 12],
  [429, 14],
  [502, 14],
  [503, 14],
  [504, 14],
]);

/**
 * An answer of this proxy itself; nothing if one is already under way, then the answer is cut off
 * instead.
 */
export function replyLocally(request: RoutedRequest, status: number, reply: LocalReply): void {
  request.reason = reply.reason;
  const { exchange } = request;
  if (exchange.status !== 0) exchange.abort(reply.resetCode);
  else if (isGrpc(exchange.headers)) replyGrpc(exchange, status, reply);
  else replyText(exchange, status, reply.message, reply.retryAfterSeconds);
}

export interface LocalReply {
  /** A short CamelCase word for logs and metrics. */
  readonly reason: string;
  /** For the client; names nothing that the client did not send. */
  readonly message: string;
  /** Of the backend's HTTP/2 stream, if that was reset. */
  readonly resetCode?: number | undefined;
  /** When it may be worth another try. */
  readonly retryAfterSeconds?: number;
}

export function replyText(
  exchange: Exchange,
  status: number,
  message: string,
  retryAfterSeconds?: number,
): void {
  const body = Buffer.from(`${message}\n`);
  const headers = new HeaderFields([
    "content-type",
    "text/plain; charset=utf-8",
    "content-length",
    String(body.length),
  ]);
  if (retryAfterSeconds !== undefined) headers.add("retry-after", String(retryAfterSeconds));
  exchange.answer(status, headers, exchange.method !== "HEAD");
  if (exchange.method === "HEAD") return;
  exchange.write(body);
  exchange.end();
}

function replyGrpc(exchange: Exchange, status: number, reply: LocalReply): void {
  const headers = new HeaderFields([
    "content-type",
    "application/grpc",
    "grpc-status",
    String(reply.resetCode === undefined ? (grpcStatus.get(status) ?? 2) : grpcStatusOf(reply.resetCode)),
    "grpc-message",
    encodeURIComponent(reply.message),
  ]);
  exchange.answer(200, headers, false);
}
