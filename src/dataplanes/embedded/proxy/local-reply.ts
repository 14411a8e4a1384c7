import type { FieldList } from "../../authentication/foundation/decision.ts";
import { grpcStatusOf } from "../http2/reset-codes.ts";
import { addAnswerFields } from "../message/edit-headers.ts";
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
  else if (isGrpc(exchange.headers)) replyGrpc(request, status, reply);
  else
    replyText(exchange, status, reply.message, {
      retryAfterSeconds: reply.retryAfterSeconds,
      fields: request.answerFields,
    });
}

/** The tenant's bodies fill its budget of memory. */
export function replyCrowded(request: RoutedRequest): void {
  replyLocally(request, 503, {
    reason: "TenantBufferLimit",
    message: "too many bytes of requests to this host, or of their answers, wait to be taken",
    retryAfterSeconds: 1,
  });
}

/** A policy of the backend allows no more at a time. */
export function replyAtBackendLimit(request: RoutedRequest): void {
  replyLocally(request, 503, {
    reason: "BackendLimit",
    message: "too many requests to this host are in flight",
    retryAfterSeconds: 1,
  });
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

interface TextReply {
  readonly retryAfterSeconds?: number | undefined;
  readonly fields?: FieldList;
}

export function replyText(
  exchange: Exchange,
  status: number,
  message: string,
  { retryAfterSeconds, fields = [] }: TextReply = {},
): void {
  const body = Buffer.from(`${message}\n`);
  const headers = new HeaderFields([
    "content-type",
    "text/plain; charset=utf-8",
    "content-length",
    String(body.length),
  ]);
  if (retryAfterSeconds !== undefined) headers.add("retry-after", String(retryAfterSeconds));
  addAnswerFields(headers, fields);
  exchange.answer(status, headers, exchange.method !== "HEAD");
  if (exchange.method === "HEAD") return;
  exchange.write(body);
  exchange.end();
}

function replyGrpc({ exchange, answerFields }: RoutedRequest, status: number, reply: LocalReply): void {
  const headers = new HeaderFields([
    "content-type",
    "application/grpc",
    "grpc-status",
    String(reply.resetCode === undefined ? (grpcStatus.get(status) ?? 2) : grpcStatusOf(reply.resetCode)),
    "grpc-message",
    encodeURIComponent(reply.message),
  ]);
  addAnswerFields(headers, answerFields);
  exchange.answer(200, headers, false);
}
