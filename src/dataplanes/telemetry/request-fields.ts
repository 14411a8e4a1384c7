/**
 * What is told of a request: the same fields in lines of text, in JSON and as attributes of
 * OpenTelemetry, whichever data plane has served it.
 *
 * The list is closed. Queries of URLs and header fields other than User-Agent are not in it: that
 * is where credentials are. What a client chooses is cut to a length; a value that is not UTF-8 is
 * read as Latin-1.
 */

import type { BackendItem } from "../../plan/backend.ts";
import type { RequestRecord } from "../request-record.ts";
import type { ListenerName, PlanNames } from "./plan-names.ts";

/** A record, and what its ids stand for. */
export interface NamedRequest {
  readonly record: RequestRecord;
  readonly listener: ListenerName | undefined;
  readonly service: BackendItem["service"] | undefined;
}

export interface RequestField {
  /** In JSON, and between percent signs in a format. */
  readonly name: string;
  readonly help: string;
  /** Of log records and spans; names of OpenTelemetry follow its conventions for HTTP. */
  readonly attribute?: string;
  /** Undefined and empty texts are not told. */
  readonly of: (request: NamedRequest) => string | number | undefined;
}

export const LONGEST_VALUES = { method: 64, authority: 256, path: 2048, userAgent: 256 } as const;

/** RFC 9110 and RFC 5789; others are `_OTHER` by convention. */
const METHODS: ReadonlySet<string> = new Set(
  "CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE".split(" "),
);

export const REQUEST_FIELDS: readonly RequestField[] = [
  {
    name: "time",
    help: "when the request's header had arrived (RFC 3339, UTC)",
    of: ({ record }) => new Date(record.time).toISOString(),
  },
  {
    name: "client",
    help: "address of the client",
    attribute: "client.address",
    of: ({ record }) => chosen(record.client, 64),
  },
  { name: "protocol", help: "`HTTP/1.0`, `HTTP/1.1` or `HTTP/2`", of: ({ record }) => record.protocol },
  {
    name: "scheme",
    help: "`https` for ports with TLS",
    attribute: "url.scheme",
    of: ({ record }) => record.scheme,
  },
  {
    name: "method",
    help: "method of the request",
    of: ({ record }) => chosen(record.method, LONGEST_VALUES.method),
  },
  {
    name: "authority",
    help: "the host that was asked for",
    attribute: "mergeway.authority",
    of: ({ record }) => chosen(record.authority, LONGEST_VALUES.authority),
  },
  {
    name: "path",
    help: "path of the request before any rewrite, without the query",
    attribute: "url.path",
    of: ({ record }) => chosen(record.path, LONGEST_VALUES.path),
  },
  {
    name: "userAgent",
    help: "what the client says it is",
    attribute: "user_agent.original",
    of: ({ record }) => chosen(record.userAgent, LONGEST_VALUES.userAgent),
  },
  {
    name: "requestId",
    help: "`X-Request-ID`, as the backend has it too",
    attribute: "mergeway.request_id",
    of: ({ record }) => chosen(record.requestId, 128),
  },
  {
    name: "gateway",
    help: "`namespace/name` of the Gateway",
    attribute: "mergeway.gateway",
    of: ({ record }) => record.gateway,
  },
  {
    name: "port",
    help: "port of the listener",
    attribute: "server.port",
    of: ({ record }) => record.port,
  },
  {
    name: "listenerKind",
    help: "kind of the object that carries the listener",
    attribute: "mergeway.listener.kind",
    of: ({ listener }) => listener?.kind,
  },
  {
    name: "listenerNamespace",
    help: "its namespace",
    attribute: "mergeway.listener.namespace",
    of: ({ listener }) => listener?.namespace,
  },
  {
    name: "listenerName",
    help: "its name",
    attribute: "mergeway.listener.name",
    of: ({ listener }) => listener?.name,
  },
  {
    name: "listenerSection",
    help: "name of the listener in it",
    attribute: "mergeway.listener.section",
    of: ({ listener }) => listener?.section,
  },
  {
    name: "hostname",
    help: "the pattern that matched the host",
    attribute: "mergeway.hostname",
    of: ({ record }) => record.hostname,
  },
  {
    name: "routeKind",
    help: "kind of the route",
    attribute: "mergeway.route.kind",
    of: ({ record }) => record.route?.kind,
  },
  {
    name: "routeNamespace",
    help: "its namespace",
    attribute: "mergeway.route.namespace",
    of: ({ record }) => record.route?.namespace,
  },
  {
    name: "routeName",
    help: "its name",
    attribute: "mergeway.route.name",
    of: ({ record }) => record.route?.name,
  },
  {
    name: "rule",
    help: "place of the rule in the route, from 0",
    attribute: "mergeway.route.rule",
    of: ({ record }) => record.route?.rule,
  },
  {
    name: "serviceNamespace",
    help: "namespace of the Service that was asked",
    attribute: "mergeway.service.namespace",
    of: ({ service }) => service?.namespace,
  },
  {
    name: "serviceName",
    help: "its name",
    attribute: "mergeway.service.name",
    of: ({ service }) => service?.name,
  },
  {
    name: "servicePort",
    help: "its port",
    attribute: "mergeway.service.port",
    of: ({ service }) => service?.port,
  },
  {
    name: "endpoint",
    help: "`address:port` of the endpoint that was asked last",
    attribute: "mergeway.endpoint",
    of: ({ record }) => record.endpoint,
  },
  {
    name: "status",
    help: "status of the answer; 0 when the client left before there was one",
    of: ({ record }) => record.status,
  },
  {
    name: "bytesReceived",
    help: "bytes of the request's body",
    attribute: "http.request.body.size",
    of: ({ record }) => record.bytesReceived,
  },
  {
    name: "bytesSent",
    help: "bytes of the answer's body",
    attribute: "http.response.body.size",
    of: ({ record }) => record.bytesSent,
  },
  {
    name: "durationMs",
    help: "milliseconds from the request's header to the last byte of the answer",
    of: ({ record }) => Math.round(record.durationMs * 1000) / 1000,
  },
  {
    name: "attempts",
    help: "how often a backend was asked, if more than once",
    of: ({ record }) => ((record.attempts ?? 0) > 1 ? record.attempts : undefined),
  },
  {
    name: "reason",
    help: "why the gateway answered or cut off the request itself, if it did",
    attribute: "mergeway.reason",
    of: ({ record }) => record.reason,
  },
  { name: "traceId", help: "id of the trace", of: ({ record }) => record.trace?.traceId },
  { name: "spanId", help: "id of the gateway's span in it", of: ({ record }) => record.trace?.spanId },
];

export function named(record: RequestRecord, names: PlanNames): NamedRequest {
  return { record, listener: names.listener(record.listener), service: names.service(record.backend) };
}

/** Attributes of the list, behind those that conventions derive from several fields. */
export function attributesOf(request: NamedRequest): readonly (readonly [string, string | number])[] {
  const { record } = request;
  const all: (readonly [string, string | number])[] = [];
  const add = (attribute: string, value: string | number | undefined): void => {
    if (value !== undefined && value !== "") all.push([attribute, value]);
  };
  const isKnown = METHODS.has(record.method);
  add("http.request.method", isKnown ? record.method : "_OTHER");
  if (!isKnown) add("http.request.method_original", chosen(record.method, LONGEST_VALUES.method));
  add("network.protocol.name", "http");
  add("network.protocol.version", record.protocol.slice("HTTP/".length));
  add("server.address", chosen(record.authority, LONGEST_VALUES.authority)?.replace(/:\d+$/, ""));
  if (record.status > 0) add("http.response.status_code", record.status);
  if ((record.attempts ?? 0) > 1) add("http.request.resend_count", (record.attempts ?? 0) - 1);
  add("error.type", errorType(record));
  for (const { attribute, of } of REQUEST_FIELDS) if (attribute !== undefined) add(attribute, of(request));
  return all;
}

/** A span of a server is named by its method: paths are of any number. */
export function spanName({ method }: RequestRecord): string {
  return METHODS.has(method) ? method : "HTTP";
}

export function isError({ status }: RequestRecord): boolean {
  return status >= 500;
}

function errorType(record: RequestRecord): string | undefined {
  if (isError(record)) return record.reason ?? String(record.status);
  return record.status === 0 ? "ClientLeft" : undefined;
}

/** What a client has chosen, at most so long. */
function chosen(text: string | undefined, longest: number): string | undefined {
  if (text === undefined || text === "") return undefined;
  const short = text.length > longest ? text.slice(0, longest) : text;
  return HIGH.test(short) ? asUtf8(short) : short;
}

const HIGH = /[\u0080-\u00ff]/;
const BEYOND = /[^\0-\u00ff]/;
const utf8: InstanceType<typeof TextDecoder> = new TextDecoder("utf-8", { fatal: true });

/** Header fields are read as Latin-1. */
function asUtf8(text: string): string {
  if (BEYOND.test(text)) return text;
  try {
    return utf8.decode(Buffer.from(text, "latin1"));
  } catch {
    return text;
  }
}
