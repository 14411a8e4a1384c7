/**
 * External authorization: the filter (envoy.extensions.filters.http.ext_authz.v3) and what it says
 * to the agent (envoy.service.auth.v3).
 */
import * as proto from "../wire/proto.ts";
import {
  type EnumValue,
  enumValue,
  flag,
  type Message,
  message,
  nested,
  nestedEach,
  read,
  text,
  textMap,
  texts,
  uint,
} from "../wire/protobuf.ts";
import { any, duration, struct } from "./core.ts";
import { httpFilter } from "./http-filters.ts";

const EXT_AUTHZ = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz";
const PER_ROUTE = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute";
/** The agent's own limits are shorter; this is for an agent that hangs. */
const TIMEOUT_MS = 35_000;
const GUARDS = "guards";
/** The details of a response: the agent has refused the request, or has not answered. */
export const AUTHENTICATION_DENIED = "ext_authz_denied";
export const AUTHENTICATION_FAILED = "ext_authz_error";
/** Where the filter keeps what an answer says for logs. */
const METADATA = "envoy.filters.http.ext_authz";
const REASON = "reason";
/** In the format of a log: why the agent has refused the request. */
export const REFUSAL_REASON: string = `%DYNAMIC_METADATA(${METADATA}:${REASON}):64%`;

/**
 * Asks the agent about every request, unless its scope or route says otherwise. `cluster`: of the
 * agent.
 */
export function authenticationFilter(name: string, cluster: string): Message<proto.HttpFilter> {
  const envoyGrpc = message(text(proto.EnvoyGrpc.clusterName, cluster));
  const agent = message(
    nested(proto.GrpcService.envoyGrpc, envoyGrpc),
    duration(proto.GrpcService.timeout, TIMEOUT_MS),
  );
  const unavailable = message(enumValue(proto.HttpStatus.code, proto.StatusCode.ServiceUnavailable));
  const config = message(
    nested(proto.ExtAuthz.grpcService, agent),
    nested(proto.ExtAuthz.statusOnError, unavailable),
    // Bytes are the filter's choice, and the size is a route's: each says its own, or none.
    nested(proto.ExtAuthz.withRequestBody, bodyAsBytes(1)),
    enumValue(proto.ExtAuthz.transportApiVersion, proto.ApiVersion.V3),
  );
  return httpFilter(name, EXT_AUTHZ, config);
}

export function authenticationOff(): Message<proto.Any> {
  return any(PER_ROUTE, message(flag(proto.ExtAuthzPerRoute.disabled, true)));
}

/**
 * The agent asks these guards. With `maxBodyBytes` it gets the body. Envoy answers most of the
 * longer ones with 413; of one that comes at once the agent gets a byte too much, and refuses it.
 */
export function authenticationOn(guards: readonly string[], maxBodyBytes?: number): Message<proto.Any> {
  const settings = message(
    textMap(proto.CheckSettings.contextExtensions, [[GUARDS, guards.join("\n")]]),
    maxBodyBytes === undefined
      ? flag(proto.CheckSettings.disableRequestBodyBuffering, true)
      : nested(proto.CheckSettings.withRequestBody, bodyAsBytes(maxBodyBytes + 1)),
  );
  return any(PER_ROUTE, message(nested(proto.ExtAuthzPerRoute.checkSettings, settings)));
}

function bodyAsBytes(maxBytes: number): Message<proto.BufferSettings> {
  return message(
    uint(proto.BufferSettings.maxRequestBytes, maxBytes),
    flag(proto.BufferSettings.packAsBytes, true),
  );
}

/** What Envoy adds for the agent alone. */
const PARTIAL_BODY = "x-envoy-auth-partial-body";

export interface CheckRequest {
  readonly guards: readonly string[];
  readonly method: string;
  readonly host: string;
  /** With the query. */
  readonly path: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array | undefined;
  readonly peer: string;
  readonly protocol: string;
}

/** Throws a RangeError where it cannot be read. */
export function readCheckRequest(bytes: Uint8Array): CheckRequest {
  const attributes = read<proto.CheckRequest>(bytes).message(proto.CheckRequest.attributes);
  const http = attributes
    ?.message(proto.AttributeContext.request)
    ?.message(proto.AttributeContextRequest.http);
  const peer = attributes
    ?.message(proto.AttributeContext.source)
    ?.message(proto.AttributeContextPeer.address)
    ?.message(proto.Address.socketAddress);
  const headers = new Map(http?.textMap(proto.AttributeContextHttpRequest.headers) ?? []);
  headers.delete(PARTIAL_BODY);
  const guards = attributes?.textMap(proto.AttributeContext.contextExtensions).get(GUARDS) ?? "";
  return {
    guards: guards === "" ? [] : guards.split("\n"),
    method: http?.text(proto.AttributeContextHttpRequest.method) ?? "",
    host: http?.text(proto.AttributeContextHttpRequest.host) ?? "",
    path: http?.text(proto.AttributeContextHttpRequest.path) ?? "",
    headers,
    body: http?.bytes(proto.AttributeContextHttpRequest.rawBody),
    peer: peer?.text(proto.SocketAddress.address) ?? "",
    protocol: http?.text(proto.AttributeContextHttpRequest.protocol) ?? "",
  };
}

type HeaderList = readonly (readonly [name: string, value: string])[];

export interface PassShape {
  readonly set: HeaderList;
  readonly remove: readonly string[];
  /** For the client. */
  readonly answer: HeaderList;
}

const PERMISSION_DENIED = 7;

export function passResponse({ set, remove, answer }: PassShape): Message<proto.CheckResponse> {
  const ok = message(
    nestedEach(
      proto.OkHttpResponse.headers,
      set.map(([name, value]) => header(name, value, false)),
    ),
    texts(proto.OkHttpResponse.headersToRemove, remove),
    nestedEach(
      proto.OkHttpResponse.responseHeadersToAdd,
      answer.map(([name, value]) => header(name, value, isAppended(name, answer))),
    ),
  );
  return message(nested(proto.CheckResponse.status, message()), nested(proto.CheckResponse.okResponse, ok));
}

export interface DenyShape {
  readonly status: number;
  /** For logs; the client does not get it. */
  readonly reason: string;
  readonly headers: HeaderList;
  readonly body: string;
}

export function denyResponse({ status, reason, headers, body }: DenyShape): Message<proto.CheckResponse> {
  const options = headers.map(([name, value]) => header(name, value, isRepeated(name, headers)));
  const denied = message(
    nested(
      proto.DeniedHttpResponse.status,
      message(enumValue(proto.HttpStatus.code, status as EnumValue<proto.StatusCode>)),
    ),
    nestedEach(proto.DeniedHttpResponse.headers, options),
    text(proto.DeniedHttpResponse.body, body),
  );
  return message(
    nested(proto.CheckResponse.status, message(uint(proto.Status.code, PERMISSION_DENIED))),
    nested(proto.CheckResponse.deniedResponse, denied),
    nested(proto.CheckResponse.dynamicMetadata, struct({ [REASON]: reason })),
  );
}

function isRepeated(name: string, headers: HeaderList): boolean {
  return headers.filter(([each]) => each === name).length > 1;
}

/** Cookies of the backend stay beside those of guards. */
function isAppended(name: string, answer: HeaderList): boolean {
  return name === "set-cookie" || isRepeated(name, answer);
}

function header(name: string, value: string, append: boolean): Message<proto.HeaderValueOption> {
  const { APPEND_IF_EXISTS_OR_ADD, OVERWRITE_IF_EXISTS_OR_ADD } = proto.HeaderAppendAction;
  return message(
    nested(
      proto.HeaderValueOption.header,
      message(text(proto.HeaderValue.key, name), text(proto.HeaderValue.value, value)),
    ),
    enumValue(
      proto.HeaderValueOption.appendAction,
      append ? APPEND_IF_EXISTS_OR_ADD : OVERWRITE_IF_EXISTS_OR_ADD,
    ),
    flag(proto.HeaderValueOption.keepEmptyValue, true),
  );
}
