/**
 * Who sends a request: asked behind all other guards, and behind nothing that costs a backend. A
 * preflight carries no credentials (Fetch, "CORS-preflight request"), so the rule's CORS filter
 * answers it unasked.
 */
import type { ItemId } from "../../../plan/plan.ts";
import type { Authenticator, Passage } from "../../authentication/authenticator.ts";
import type { AuthenticationRequest, Refusal } from "../../authentication/foundation/decision.ts";
import { withoutParameters } from "../../authentication/query.ts";
import type { Limits } from "../limits/options.ts";
import { isGrpc } from "../message/grpc.ts";
import { HeaderFields } from "../message/header-fields.ts";
import { collectBody } from "./collect-body.ts";
import { isPreflight } from "./cors.ts";
import { replyLocally } from "./local-reply.ts";
import type { RoutedRequest } from "./routed-request.ts";

export interface Authenticating {
  readonly authenticator: Authenticator;
  readonly limits: Limits;
}

/** Calls `next` at once or later, or answers the request. */
export function authenticate(
  { authenticator, limits }: Authenticating,
  request: RoutedRequest,
  ids: readonly ItemId[],
  next: () => void,
): void {
  const action = request.rule?.action;
  if (action?.type === "forward" && action.filters.cors !== undefined && isPreflight(request)) {
    next();
    return;
  }
  if (!fitsAsked(request)) return;
  const gone = new AbortController();
  request.exchange.onClose(() => gone.abort());
  collectBody(limits, request, (body) => {
    void authenticator.check(ids, viewOf(request, body), gone.signal).then((outcome) => {
      if (gone.signal.aborted) return;
      if (outcome.allowed) {
        admit(request, outcome);
        next();
      } else refuse(request, outcome);
    });
  });
}

/** False: a guard wants to see the body, and the request announces a longer one. */
function fitsAsked(request: RoutedRequest): boolean {
  const { askedBytes, exchange } = request;
  if (askedBytes === 0) return true;
  request.maxBodyBytes = Math.min(request.maxBodyBytes, askedBytes);
  if (Number(exchange.headers.get("content-length") ?? 0) <= askedBytes) return true;
  exchange.closeAfterAnswer();
  replyLocally(request, 413, { reason: "BodyTooLarge", message: "the request body is too large" });
  return false;
}

function viewOf(request: RoutedRequest, body: Uint8Array | undefined): AuthenticationRequest {
  const { method, authority, path, query, headers, exchange } = request;
  const fields = new Map<string, string>();
  for (const [name, value] of headers) {
    const known = fields.get(name);
    fields.set(name, known === undefined ? value : `${known},${value}`);
  }
  return {
    ...{ method, authority, path, query, headers: fields },
    ...(body === undefined ? {} : { body }),
    peer: exchange.connection.client,
    protocol: exchange.protocol,
  };
}

function admit(request: RoutedRequest, { set, hides, hiddenQueries, answer }: Passage): void {
  request.headers.removeAll(hides);
  for (const [name, value] of set) request.headers.add(name, value);
  request.query = withoutParameters(request.query, hiddenQueries);
  request.hides = hides;
  request.answerFields = answer;
}

function refuse(request: RoutedRequest, { status, reason, headers: fields, body }: Refusal): void {
  const { exchange } = request;
  if (typeof body === "string" && fields.length === 0) {
    replyLocally(request, status, { reason, message: body.trimEnd() });
    return;
  }
  if (isGrpc(exchange.headers)) {
    replyLocally(request, status, { reason, message: "this request may not pass" });
    return;
  }
  request.reason = reason;
  const content = Buffer.from(body);
  const headers = new HeaderFields(["content-length", String(content.length)]);
  for (const [name, value] of fields) headers.add(name, value);
  if (!headers.has("content-type") && typeof body === "string")
    headers.add("content-type", "text/plain; charset=utf-8");
  const hasBody = exchange.method !== "HEAD" && status !== 304;
  exchange.answer(status, headers, hasBody);
  if (!hasBody) return;
  exchange.write(content);
  exchange.end();
}
