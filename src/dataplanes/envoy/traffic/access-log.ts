/**
 * Envoy's record of a request: one line of JSON, written so that the route's name says which
 * listener, host and rule it was. Access logs and spans are made of it, by whoever reads it.
 */

import type { PortItem } from "../../../plan/plan.ts";
import type { RuleOrigin } from "../../../plan/rule.ts";
import type { RequestRecord, RequestTrace } from "../../request-record.ts";
import { LONGEST_VALUES } from "../../telemetry/request-fields.ts";
import { readTraceparent } from "../../telemetry/trace-context.ts";
import { ANSWERED, backendOfCluster, listenerOfWord, UNGUARDED } from "../compile/names.ts";
import { AUTHENTICATION_DENIED, AUTHENTICATION_FAILED, REFUSAL_REASON } from "../messages/authorization.ts";
import { BODY_TOO_LARGE } from "../messages/body-count.ts";
import { ADDRESS_DENIED } from "../messages/guards.ts";
import { keptField } from "../messages/kept-fields.ts";

const fields = {
  time: "%START_TIME(%s.%3f)%",
  client: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
  protocol: "%PROTOCOL%",
  method: `%REQ(:METHOD):${LONGEST_VALUES.method}%`,
  authority: `%REQ(X-FORWARDED-HOST?:AUTHORITY):${LONGEST_VALUES.authority}%`,
  path: keptField(":path", LONGEST_VALUES.path),
  // It is of no use after a rewrite, but there also where a path is too long to be kept.
  last_path: `%REQ(:PATH):${LONGEST_VALUES.path}%`,
  user_agent: `%REQ(USER-AGENT):${LONGEST_VALUES.userAgent}%`,
  request_id: "%REQ(X-REQUEST-ID):128%",
  route: "%ROUTE_NAME%",
  backend: "%UPSTREAM_CLUSTER_RAW%",
  endpoint: "%UPSTREAM_HOST%",
  status: "%RESPONSE_CODE%",
  bytes_received: "%BYTES_RECEIVED%",
  bytes_sent: "%BYTES_SENT%",
  duration_us: "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%",
  duration_ms: "%DURATION%",
  attempts: "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
  details: "%RESPONSE_CODE_DETAILS%",
  flags: "%RESPONSE_FLAGS%",
  refusal: REFUSAL_REASON,
} as const;

/** Where requests are traced. */
const traceFields = {
  trace_id: "%TRACE_ID%",
  span_id: "%SPAN_ID%",
  traceparent: "%REQ(TRACEPARENT):128%",
  parent: keptField("traceparent", 128),
} as const;

/** The format of a record; `readAccessLog` reads what Envoy makes of it. */
export function recordFormat(port: PortItem, isTraced: boolean): Readonly<Record<string, string>> {
  return {
    ...fields,
    ...(isTraced ? traceFields : {}),
    port: String(port.port),
    scheme: port.protocol === "tls" ? "https" : "http",
  };
}

type Name = keyof typeof fields | keyof typeof traceFields | "port" | "scheme";
type Line = Readonly<Partial<Record<Name, string | number | null>>>;

/** A line of a Gateway's Envoy. Undefined: it is no access log. */
export function readAccessLog(gateway: string, line: string): RequestRecord | undefined {
  const entry = parse(line);
  if (entry === undefined) return undefined;
  const text = (key: keyof Line): string => String(entry[key] ?? "");
  const [path = ""] = (text("path") || text("last_path")).split("?");
  const route = readRoute(gateway, text("route"));
  const reason = reasonOf(entry, route.kind);
  const protocol = text("protocol");
  const trace = readTrace(text);
  // There is no last byte of a response that the client did not wait for.
  const durationMs = typeof entry.duration_us === "number" ? entry.duration_us / 1000 : undefined;
  const attempts = Number(text("attempts"));
  return {
    time: Math.round(Number(text("time")) * 1000),
    client: text("client"),
    protocol: protocol === "HTTP/2" || protocol === "HTTP/1.0" ? protocol : "HTTP/1.1",
    scheme: text("scheme") === "https" ? "https" : "http",
    method: text("method"),
    authority: text("authority"),
    path,
    ...(text("user_agent") === "" ? {} : { userAgent: text("user_agent") }),
    requestId: text("request_id"),
    gateway,
    port: Number(text("port")),
    ...route.where,
    ...(text("backend") === "" ? {} : { backend: backendOfCluster(gateway, text("backend")) }),
    ...(text("endpoint") === "" ? {} : { endpoint: text("endpoint") }),
    status: Number(text("status")),
    bytesReceived: Number(text("bytes_received")),
    bytesSent: Number(text("bytes_sent")),
    durationMs: durationMs ?? Number(text("duration_ms")),
    ...(attempts > 1 ? { attempts } : {}),
    ...(trace === undefined ? {} : { trace }),
    ...(reason === undefined ? {} : { reason }),
  };
}

/** What a request came to; a part that is not known is absent. */
export function readOutcome(
  gateway: string,
  said: Readonly<Record<"flags" | "details" | "refusal" | "backend" | "route", string>> & {
    readonly status: number;
  },
): Pick<RequestRecord, "listener" | "route" | "backend" | "reason"> {
  const route = readRoute(gateway, said.route === "-" ? "" : said.route);
  const reason = reasonOf(said, route.kind);
  const { hostname: _hostname, ...where } = route.where;
  return {
    ...where,
    ...(said.backend === "-" ? {} : { backend: backendOfCluster(gateway, said.backend) }),
    ...(reason === undefined ? {} : { reason }),
  };
}

/**
 * The router has told the backend whether the request is sampled. One that did not get so far has
 * its client's word in the header, if anything, and Envoy's own in the request id (the 15th digit
 * of its UUIDs, which is 4 in others).
 */
function readTrace(text: (key: Name) => string): RequestTrace | undefined {
  const traceId = text("trace_id");
  const spanId = text("span_id");
  if (traceId === "" || spanId === "") return undefined;
  const given = readTraceparent(text("traceparent"));
  const parent = readTraceparent(text("parent"));
  const isTold = given?.parentId === spanId;
  const isDrawn = /^.{8}-.{4}-[^4]/.test(text("request_id"));
  return {
    traceId,
    spanId,
    ...(parent === undefined ? {} : { parentId: parent.parentId }),
    isSampled: isTold ? given.isSampled : isDrawn && given?.isSampled !== false,
  };
}

function parse(line: string): Line | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Line;
  } catch {
    return undefined;
  }
}

interface ReadRoute {
  readonly kind: "rule" | typeof UNGUARDED | typeof ANSWERED | "misdirected" | "unmatched" | "none";
  readonly where: Pick<RequestRecord, "listener" | "hostname" | "route">;
}

function readRoute(gateway: string, name: string): ReadRoute {
  const [listener = "", pattern = "", kind = "", namespace = "", route = "", rule, match, more] =
    name.split(" ");
  if (kind === "") return { kind: "none", where: {} };
  const where = { listener: listenerOfWord(gateway, listener), hostname: pattern === "*" ? "" : pattern };
  if (kind === "misdirected" || kind === "unmatched") return { kind, where };
  const origin = {
    kind: kind as RuleOrigin["kind"],
    namespace,
    name: route,
    rule: Number(rule),
    match: Number(match),
  };
  const kindOf = more === UNGUARDED || more === ANSWERED ? more : "rule";
  return { kind: kindOf, where: { ...where, route: origin } };
}

function reasonOf(
  { details, flags, refusal, status }: Pick<Line, "details" | "flags" | "refusal" | "status">,
  kind: ReadRoute["kind"],
): string | undefined {
  const set = new Set(String(flags ?? "").split(","));
  if (details === ADDRESS_DENIED) return "AddressDenied";
  if (String(details).startsWith("rbac_access_denied")) return "Refused";
  if (details === AUTHENTICATION_DENIED) return refusal ? String(refusal) : undefined;
  // The agent is away, or has not answered in time.
  if (details === AUTHENTICATION_FAILED) return "AuthenticationUnavailable";
  if (details === "local_rate_limited") return "RateLimited";
  if (kind === "unguarded") return "PolicyUnavailable";
  if (kind === "misdirected") return "Misdirected";
  if (kind === "unmatched") return "NoRoute";
  if (kind === "answered" && details === "direct_response") return "DirectResponse";
  if (details === "route_not_found") return "NoListener";
  if (details === "direct_response" && Number(status) === 429) return "RateLimited";
  if (details === "direct_response" && Number(status) === 413) return "BodyTooLarge";
  // The second is of a body that a guard wants to see.
  if (String(details).includes(BODY_TOO_LARGE) || details === "request_payload_too_large")
    return "BodyTooLarge";
  if (details === "direct_response") return Number(status) >= 500 ? "RouteInvalid" : undefined;
  if (set.has("UH") || set.has("NC")) return "NoEndpoints";
  if (set.has("UO")) return "BackendLimit";
  if (set.has("UF")) return "BackendUnreachable";
  if (set.has("SI")) return "IdleTimeout";
  if (set.has("UT")) return details === "upstream_per_try_timeout" ? "BackendTimeout" : "RequestTimeout";
  return set.has("UC") || set.has("UR") || set.has("UPE") ? "BackendReset" : undefined;
}
