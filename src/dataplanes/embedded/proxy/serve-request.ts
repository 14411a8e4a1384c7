/**
 * The way of a request through the embedded data plane. Each step either answers and ends the way,
 * or hands on to the next.
 */

import { randomUUID } from "node:crypto";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { RequestRecord } from "../../request-record.ts";
import type { RateBuckets } from "../guards/rate-buckets.ts";
import type { Limits, TrustedFront } from "../limits/options.ts";
import type { TenantBudgets } from "../limits/tenant-budgets.ts";
import { cleanFields } from "../message/client-fields.ts";
import type { Exchange } from "../message/exchange.ts";
import { parseTarget } from "../message/request-target.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import { clientOf } from "./client-address.ts";
import { forward } from "./forward.ts";
import { addForwardedHeaders } from "./forwarded-headers.ts";
import { passGuards } from "./guards.ts";
import { replyLocally, replyText } from "./local-reply.ts";
import { redirect } from "./redirect.ts";
import { RoutedRequest } from "./routed-request.ts";

/**
 * Any method may be known to a backend; no backend knows one that is longer than this (RFC 9112,
 * 3).
 */
const LONGEST_METHOD = 64;

/** What serving needs besides the request. */
export interface Serving {
  readonly table: RoutingTable;
  readonly upstreams: Upstreams;
  readonly budgets: TenantBudgets;
  readonly buckets: RateBuckets;
  readonly limits: Limits;
  /** For ports without `clientAddress`. */
  readonly trustedHops: TrustedFront;
  readonly onRequestEnd: ((record: RequestRecord) => void) | undefined;
}

export function serveRequest(serving: Serving, exchange: Exchange): void {
  exchange.connection.active++;
  const { request, refusal } = read(serving, exchange);
  exchange.onClose(() => finish(serving, request));
  try {
    if (refusal !== undefined) refuse(request, refusal);
    else if (
      admit(serving, request) &&
      charge(serving, request) &&
      match(serving, request) &&
      passGuards(serving, request)
    ) {
      act(serving, request);
    }
  } catch {
    // Something that a route asks for cannot be put into an answer; whatever it is, it is this
    // request's trouble only.
    replyLocally(request, 500, { reason: "RouteInvalid", message: "this route cannot be served" });
  }
}

interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** Reads the request strictly; what is ambiguous is refused before anybody routes on it. */
function read(
  { limits, trustedHops }: Serving,
  exchange: Exchange,
): { readonly request: RoutedRequest; readonly refusal: Refusal | undefined } {
  const target = parseTarget(exchange.target);
  const invalid = exchange.invalid ?? ("invalid" in target ? target.invalid : undefined);
  const known = "invalid" in target ? { path: exchange.target.slice(0, 1024), query: "" } : target;
  const authority = known.authority ?? exchange.authority ?? "";
  const { path, query } = known;
  const client = clientOf(exchange, trustedHops);
  const headers = cleanFields(exchange.headers, client.behindProxy);
  const parts = { authority, path, query, headers, client };
  const request = new RoutedRequest(exchange, parts, requestIdOf(exchange));
  addForwardedHeaders(request);
  return { request, refusal: check() };

  function check(): Refusal | undefined {
    if (exchange.method === "CONNECT") return { status: 405, message: "CONNECT is not served" };
    if (exchange.method.length > LONGEST_METHOD) return { status: 501, message: "the method is too long" };
    if (invalid !== undefined) return { status: 400, message: invalid };
    if (path === "*" && exchange.method !== "OPTIONS")
      return { status: 400, message: "only OPTIONS asks for *" };
    if (exchange.headers.count > limits.headerCount)
      return { status: 431, message: "too many header fields" };
    const length = Number(exchange.headers.get("content-length") ?? 0);
    const tooLarge = limits.bodyBytes > 0 && length > limits.bodyBytes;
    return tooLarge ? { status: 413, message: "the request body is too large" } : undefined;
  }
}

/** Which listener the request belongs to: isolation, 404, 421. */
function admit(serving: Serving, request: RoutedRequest): boolean {
  const { connection } = request.exchange;
  const admission =
    connection.listener === undefined
      ? serving.table.admitHttp(connection.port.id, request.authority)
      : serving.table.admitHttps(connection.listener, request.authority);
  // A connection may outlive the protocol of its port; it never gets to see what now belongs to
  // TLS.
  const mixed = "listener" in admission && (admission.listener.protocol === "HTTPS") !== connection.secure;
  if ("listener" in admission && !mixed) {
    request.listener = admission.listener;
    request.hostname = admission.listener.hostname;
    return true;
  }
  if ("status" in admission && admission.status === 421) {
    replyLocally(request, 421, {
      reason: "Misdirected",
      message: "this connection does not serve that host; open another one for it",
    });
  } else replyLocally(request, 404, { reason: "NoListener", message: "no listener for this host" });
  return false;
}

/**
 * Counts the request for the tenant that is asked for, until it is finished; too many are refused
 * before they cost anything more.
 */
function charge(serving: Serving, request: RoutedRequest): boolean {
  const { listener, exchange } = request;
  const budget = listener && serving.budgets.of(listener.id);
  if (!exchange.connection.countFor(budget)) {
    exchange.closeAfterAnswer();
    replyLocally(request, 503, {
      reason: "TenantConnectionLimit",
      message: "too many connections to this host are open",
      retryAfterSeconds: 1,
    });
    return false;
  }
  if (budget === undefined) return true;
  if (!budget.takeRequest()) {
    replyLocally(request, 503, {
      reason: "TenantRequestLimit",
      message: "too many requests to this host are in flight",
      retryAfterSeconds: 1,
    });
    return false;
  }
  request.budget = budget;
  return true;
}

function match(serving: Serving, request: RoutedRequest): boolean {
  const { listener } = request;
  const found =
    listener === undefined ? undefined : serving.table.match(listener, request.authority, request);
  if (found === undefined) {
    replyLocally(request, 404, { reason: "NoRoute", message: "no route for this request" });
    return false;
  }
  request.rule = found.rule;
  request.hostname = found.host.hostname;
  return true;
}

function act(serving: Serving, request: RoutedRequest): void {
  const action = request.rule?.action;
  if (action?.type === "forward") forward(serving, request, action);
  else if (action?.type === "redirect") redirect(request, action);
  else if (action?.type === "respond") {
    replyLocally(request, action.status, { reason: "RouteInvalid", message: action.reason });
  }
}

function finish(serving: Serving, request: RoutedRequest): void {
  request.exchange.connection.requestEnded();
  request.budget?.giveBackRequest();
  serving.onRequestEnd?.(request.toRecord());
}

function refuse(request: RoutedRequest, { status, message }: Refusal): void {
  request.reason = "Refused";
  request.exchange.closeAfterAnswer();
  replyText(request.exchange, status, message);
}

/** A client's own id is kept when it is harmless, so that it can follow its request. */
function requestIdOf(exchange: Exchange): string {
  const given = exchange.headers.get("x-request-id");
  return given !== undefined && /^[A-Za-z0-9._~:=+/-]{1,128}$/.test(given) ? given : randomUUID();
}
