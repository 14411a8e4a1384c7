/**
 * The way of a request through the embedded data plane. Each step either answers and ends the way,
 * or hands on to the next.
 */

import { randomUUID } from "node:crypto";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import { isStillValid, validationAt } from "../../../plan/client-validation.ts";
import type { ListenerItem } from "../../../plan/plan.ts";
import type { Authenticator } from "../../authentication/authenticator.ts";
import type { RequestRecord } from "../../request-record.ts";
import type { Sampler } from "../../telemetry/trace-context.ts";
import type { RateBuckets } from "../guards/rate-buckets.ts";
import { BufferedBytes } from "../limits/buffered-bytes.ts";
import type { CompressorBudget } from "../limits/compressor-budget.ts";
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
import { replyCrowded, replyLocally, replyText } from "./local-reply.ts";
import { redirect } from "./redirect.ts";
import { respond } from "./respond.ts";
import { RoutedRequest } from "./routed-request.ts";

/**
 * Any method may be known to a backend; no backend knows one that is longer than this (RFC 9112,
 * 3).
 */
const LONGEST_METHOD = 64;
/** What a client says of its trace (W3C Trace Context). */
const TRACE_CONTEXT = ["traceparent", "tracestate"] as const;

/** What serving needs besides the request. */
export interface Serving {
  readonly table: RoutingTable;
  readonly upstreams: Upstreams;
  readonly budgets: TenantBudgets;
  readonly compressors: CompressorBudget;
  readonly buckets: RateBuckets;
  readonly authenticator: Authenticator;
  readonly limits: Limits;
  /** For ports without `clientAddress`. */
  readonly trustedHops: TrustedFront;
  readonly onRequestEnd: ((record: RequestRecord) => void) | undefined;
  /** Undefined: requests are not traced. */
  readonly sampler: Sampler | undefined;
}

export function serveRequest(serving: Serving, exchange: Exchange): void {
  exchange.connection.active++;
  const { request, refusal } = read(serving, exchange);
  exchange.onClose(() => finish(serving, request));
  try {
    if (refusal !== undefined) refuse(request, refusal);
    else if (admit(serving, request) && charge(serving, request) && match(serving, request)) {
      passGuards(serving, request, () => act(serving, request));
    }
  } catch {
    refuseInvalid(request);
  }
}

/**
 * Something that a route asks for cannot be put into an answer; whatever it is, it is this
 * request's trouble only.
 */
function refuseInvalid(request: RoutedRequest): void {
  replyLocally(request, 500, { reason: "RouteInvalid", message: "this route cannot be served" });
}

interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** Reads the request strictly; what is ambiguous is refused before anybody routes on it. */
function read(
  { limits, trustedHops, sampler }: Serving,
  exchange: Exchange,
): { readonly request: RoutedRequest; readonly refusal: Refusal | undefined } {
  const target = parseTarget(exchange.target);
  const invalid = exchange.invalid ?? ("invalid" in target ? target.invalid : undefined);
  const known = "invalid" in target ? { path: exchange.target.slice(0, 1024), query: "" } : target;
  const authority = known.authority ?? exchange.authority ?? "";
  const { path, query } = known;
  const client = clientOf(exchange, trustedHops);
  const headers = cleanFields(exchange.headers, client.behindProxy);
  if (sampler?.continuesClients === false) for (const name of TRACE_CONTEXT) headers.remove(name);
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
  const proven = "listener" in admission && isProven(serving, connection, admission.listener);
  if ("listener" in admission && !mixed && proven) {
    request.listener = admission.listener;
    request.hostname = admission.listener.hostname;
    return true;
  }
  if (("status" in admission && admission.status === 421) || ("listener" in admission && !proven)) {
    replyLocally(request, 421, {
      reason: "Misdirected",
      message: "this connection does not serve that host; open another one for it",
    });
  } else replyLocally(request, 404, { reason: "NoListener", message: "no listener for this host" });
  return false;
}

/**
 * A connection that was made before the listener asked for client certificates, or asked others,
 * has not met what is asked now: the client comes back on one that has.
 */
function isProven(
  { table }: Serving,
  { handshake, secure }: RoutedRequest["exchange"]["connection"],
  listener: ListenerItem,
): boolean {
  if (!secure) return true;
  return isStillValid(handshake?.validation, validationAt(listener, table.get("port", listener.port)));
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
  if (budget.isFull) {
    replyCrowded(request);
    return false;
  }
  if (!budget.takeRequest()) {
    replyLocally(request, 503, {
      reason: "TenantRequestLimit",
      message: "too many requests to this host are in flight",
      retryAfterSeconds: 1,
    });
    return false;
  }
  request.budget = budget;
  request.buffered = new BufferedBytes(budget);
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
  beginTrace(serving, request);
  return true;
}

/** Its listener and rule are known if there are any: they say how much is sampled. */
function beginTrace({ sampler }: Serving, request: RoutedRequest): void {
  if (sampler === undefined || request.trace !== undefined) return;
  const { exchange, listener, rule } = request;
  const objects = listener === undefined ? {} : { owner: listener.owner, route: rule?.origin };
  request.trace = sampler.begin(exchange.headers.get("traceparent"), objects);
}

function act(serving: Serving, request: RoutedRequest): void {
  const action = request.rule?.action;
  try {
    if (action?.type === "forward") forward(serving, request, action);
    else if (action?.type === "redirect") redirect(request, action);
    else if (action?.type === "respond") respond(request, action);
  } catch {
    refuseInvalid(request);
  }
}

function finish(serving: Serving, request: RoutedRequest): void {
  request.exchange.connection.requestEnded();
  request.buffered?.release();
  request.budget?.giveBackRequest();
  if (serving.onRequestEnd === undefined) return;
  beginTrace(serving, request);
  serving.onRequestEnd(request.toRecord());
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
