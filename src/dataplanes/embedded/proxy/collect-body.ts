import { retryOfMethod } from "../../../plan/retry-limits.ts";
import type { Limits } from "../limits/options.ts";
import { RequestBody } from "../message/request-body.ts";
import { replyCrowded, replyLocally } from "./local-reply.ts";
import type { RoutedRequest } from "./routed-request.ts";

/** The body of a request, read once; undefined: it has none. */
export function bodyOf(limits: Limits, request: RoutedRequest): RequestBody | undefined {
  const { exchange } = request;
  const action = request.rule?.action;
  const forward = action?.type === "forward" ? action : undefined;
  if (request.body !== undefined || exchange.body === undefined) return request.body;
  const isRetried = retryOfMethod(forward?.retry, request.method) !== undefined;
  request.body = new RequestBody(exchange.body, {
    maxBytes: Math.min(limits.bodyBytes || Number.POSITIVE_INFINITY, request.maxBodyBytes),
    keepBytes: Math.max(isRetried ? limits.replayBytes : 0, request.askedBytes),
    mirrorBytes: limits.replayBytes,
    // A limit of the rule counts both directions, and takes its place.
    idleMs: forward?.timeouts.idleMs === undefined ? limits.bodyIdleTimeoutMs : 0,
    buffered: request.buffered,
    onWanted: () => exchange.continue(),
    onData: (bytes) => {
      request.bytesReceived += bytes;
    },
  });
  return request.body;
}

/**
 * Reads the whole body for a guard that wants to see it, and keeps it for the backend. Calls `next`
 * at once or later, or answers the request.
 */
export function collectBody(
  limits: Limits,
  request: RoutedRequest,
  next: (body: Uint8Array | undefined) => void,
): void {
  const { exchange } = request;
  const wanted = request.askedBytes > 0 && !exchange.websocket;
  const body = wanted ? bodyOf(limits, request) : undefined;
  if (body === undefined) {
    next(undefined);
    return;
  }
  body.onRefused((refusal) => {
    exchange.closeAfterAnswer();
    if (refusal === "crowded") replyCrowded(request);
    else if (refusal === "large")
      replyLocally(request, 413, { reason: "BodyTooLarge", message: "the request body is too large" });
    else replyLocally(request, 408, { reason: "SlowBody", message: "the request body came too slowly" });
  });
  const chunks: Buffer[] = [];
  const reader = body.open();
  reader.on("data", (chunk: Buffer) => chunks.push(chunk));
  reader.once("end", () => {
    // What is not kept could not be forwarded.
    if (body.replayable) next(Buffer.concat(chunks));
    else replyCrowded(request);
  });
}
