/**
 * Envoy's access log: one line of JSON per request, written so that the route's name says which
 * listener, host and rule it was.
 */

import type { PortItem } from "../../plan/plan.ts";
import type { RuleOrigin } from "../../plan/rule.ts";
import type { RequestRecord } from "../request-record.ts";
import { backendOfCluster, listenerOfWord, UNGUARDED } from "./compile/names.ts";
import { ADDRESS_DENIED } from "./messages/guards.ts";
import { stdoutJsonLog } from "./messages/listener.ts";
import type { Message } from "./wire/protobuf.ts";

const fields = {
  time: "%START_TIME(%s.%3f)%",
  client: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
  protocol: "%PROTOCOL%",
  method: "%REQ(:METHOD)%",
  authority: "%REQ(X-FORWARDED-HOST?:AUTHORITY)%",
  path: "%REQ(:PATH)%",
  request_id: "%REQ(X-REQUEST-ID)%",
  route: "%ROUTE_NAME%",
  backend: "%UPSTREAM_CLUSTER_RAW%",
  endpoint: "%UPSTREAM_HOST%",
  status: "%RESPONSE_CODE%",
  bytes_received: "%BYTES_RECEIVED%",
  bytes_sent: "%BYTES_SENT%",
  duration_ms: "%DURATION%",
  details: "%RESPONSE_CODE_DETAILS%",
  flags: "%RESPONSE_FLAGS%",
} as const;

export function accessLog(port: PortItem): Message {
  return stdoutJsonLog({ ...fields, port: String(port.port) });
}

type Line = Readonly<Record<keyof typeof fields | "port", string | number | null>>;

/** A line of a Gateway's Envoy. Undefined: it is no access log. */
export function readAccessLog(gateway: string, line: string): RequestRecord | undefined {
  const entry = parse(line);
  if (entry === undefined) return undefined;
  const text = (key: keyof Line): string => String(entry[key] ?? "");
  const [path = ""] = text("path").split("?");
  const route = readRoute(gateway, text("route"));
  const reason = reasonOf(entry, route.kind);
  const protocol = text("protocol");
  return {
    time: Math.round(Number(text("time")) * 1000),
    client: text("client"),
    protocol: protocol === "HTTP/2" || protocol === "HTTP/1.0" ? protocol : "HTTP/1.1",
    method: text("method"),
    authority: text("authority"),
    path,
    requestId: text("request_id"),
    port: Number(text("port")),
    ...route.where,
    ...(entry.backend === null || text("backend") === ""
      ? {}
      : { backend: backendOfCluster(gateway, text("backend")) }),
    ...(entry.endpoint === null || text("endpoint") === "" ? {} : { endpoint: text("endpoint") }),
    status: Number(text("status")),
    bytesReceived: Number(text("bytes_received")),
    bytesSent: Number(text("bytes_sent")),
    durationMs: Number(text("duration_ms")),
    ...(reason === undefined ? {} : { reason }),
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
  readonly kind: "rule" | "unguarded" | "misdirected" | "unmatched" | "none";
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
  return { kind: more === UNGUARDED ? "unguarded" : "rule", where: { ...where, route: origin } };
}

function reasonOf({ details, flags, status }: Line, kind: ReadRoute["kind"]): string | undefined {
  const set = new Set(String(flags ?? "").split(","));
  if (details === ADDRESS_DENIED) return "AddressDenied";
  if (String(details).startsWith("rbac_access_denied")) return "Refused";
  if (details === "local_rate_limited") return "RateLimited";
  if (kind === "unguarded") return "PolicyUnavailable";
  if (kind === "misdirected") return "Misdirected";
  if (kind === "unmatched") return "NoRoute";
  if (details === "route_not_found") return "NoListener";
  if (details === "direct_response" && Number(status) === 429) return "RateLimited";
  if (details === "direct_response") return Number(status) >= 500 ? "RouteInvalid" : undefined;
  if (set.has("UH") || set.has("NC")) return "NoEndpoints";
  if (set.has("UO")) return "BackendLimit";
  if (set.has("UF")) return "BackendUnreachable";
  if (set.has("UT")) return details === "upstream_per_try_timeout" ? "BackendTimeout" : "RequestTimeout";
  return set.has("UC") || set.has("UR") || set.has("UPE") ? "BackendReset" : undefined;
}
