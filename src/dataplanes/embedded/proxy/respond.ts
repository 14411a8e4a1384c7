import type { RespondAction } from "../../../plan/rule.ts";
import { isGrpc } from "../message/grpc.ts";
import { HeaderFields } from "../message/header-fields.ts";
import { replyLocally } from "./local-reply.ts";
import type { RoutedRequest } from "./routed-request.ts";

/** A fixed answer: what somebody has written, or why the rule cannot be served. */
export function respond(request: RoutedRequest, { status, reason, content }: RespondAction): void {
  const { exchange } = request;
  if (content === undefined) {
    replyLocally(request, status, { reason: "RouteInvalid", message: reason });
    return;
  }
  if (isGrpc(exchange.headers)) {
    replyLocally(request, status, { reason: "DirectResponse", message: "this route does not serve now" });
    return;
  }
  request.reason = "DirectResponse";
  const body = Buffer.from(content.text);
  const headers = new HeaderFields(["content-length", String(body.length), "cache-control", "no-store"]);
  if (body.length > 0) headers.add("content-type", content.type);
  if (content.retryAfterSeconds !== undefined) headers.add("retry-after", String(content.retryAfterSeconds));
  const hasBody = body.length > 0 && exchange.method !== "HEAD";
  exchange.answer(status, headers, hasBody);
  if (!hasBody) return;
  exchange.write(body);
  exchange.end();
}
