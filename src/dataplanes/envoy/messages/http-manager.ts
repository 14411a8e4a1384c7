/** The HTTP connection manager (envoy.extensions.filters.network.http_connection_manager.v3). */

import type { ForwardedParts } from "../../../plan/client-validation.ts";
import type { ClientLimits } from "../../../plan/limits/client-limits.ts";
import * as proto from "../wire/proto.ts";
import {
  type EncodedField,
  enumValue,
  explicitUint,
  flag,
  type Message,
  message,
  nested,
  nestedEach,
  text,
  texts,
  uint,
} from "../wire/protobuf.ts";
import { AUTHENTICATION_DENIED } from "./authorization.ts";
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from "./cluster.ts";
import {
  adsSource,
  any,
  boolValue,
  type Cidr,
  cidrRange,
  duration,
  extension,
  headerOption,
  inlineString,
  uint32Value,
} from "./core.ts";
import { ADDRESS_DENIED } from "./guards.ts";
import { type HeaderMutation, headerMutation } from "./http-filters.ts";

export interface HttpShape {
  readonly statPrefix: string;
  /** Done before anything else reads the request. */
  readonly early: readonly HeaderMutation[];
  readonly scopeHeader: string;
  /** In order of their running; the router is the last. */
  readonly filters: readonly Message<proto.HttpFilter>[];
  /** Instead of them, for WebSockets. */
  readonly upgradeFilters: readonly Message<proto.HttpFilter>[];
  /** Header matches of requests whose refusal is a 400. */
  readonly badRequests: readonly Message<proto.HeaderMatcher>[];
  /** Whose X-Forwarded-For counts. By then the peer itself has been added to it. */
  readonly trust:
    | { readonly type: "nobody" }
    | { readonly type: "hops"; readonly hops: number }
    | { readonly type: "networks"; readonly cidrs: readonly Cidr[] };
  /** Of clients; absent: the same for all ports. */
  readonly limits?: ClientLimits | undefined;
  /** What backends are told of a client's certificate; absent: nothing. */
  readonly clientCertificate?: ForwardedParts | undefined;
  readonly accessLogs?: readonly Message<proto.AccessLog>[];
  readonly tracing?: Message<proto.Tracing> | undefined;
}

/** After so long without a byte in either direction a request, or an upgraded stream, is over. */
export const STREAM_IDLE_MS = 300_000;

/** Of one client's connection. */
const CONCURRENT_STREAMS = 128;
const HEADER_MS = 10_000;
const HEADER_COUNT = 128;
/** Of a connection. */
const IDLE_MS = 60_000;

export function httpManager(shape: HttpShape): Message<proto.Filter> {
  const { limits = {} } = shape;
  const config = message(
    text(proto.HttpConnectionManager.statPrefix, shape.statPrefix),
    nested(proto.HttpConnectionManager.scopedRoutes, scopedRoutes(shape.scopeHeader)),
    nestedEach(proto.HttpConnectionManager.httpFilters, shape.filters),
    nested(proto.HttpConnectionManager.tracing, shape.tracing),
    nested(proto.HttpConnectionManager.httpProtocolOptions, http1Options()),
    nested(proto.HttpConnectionManager.http2ProtocolOptions, http2Options(limits)),
    nestedEach(proto.HttpConnectionManager.accessLog, shape.accessLogs ?? []),
    // Envoy has one way or the other.
    boolValue(proto.HttpConnectionManager.useRemoteAddress, shape.trust.type === "nobody"),
    // Interim answers (103 Early Hints) reach the client, and the backend itself says whether it
    // wants a body.
    flag(proto.HttpConnectionManager.proxy100Continue, true),
    nested(proto.HttpConnectionManager.upgradeConfigs, webSockets(shape.upgradeFilters)),
    duration(proto.HttpConnectionManager.streamIdleTimeout, STREAM_IDLE_MS),
    flag(proto.HttpConnectionManager.skipXffAppend, true),
    // Nobody is internal: no client may steer the router with headers meant for the mesh. An empty
    // list would mean private addresses.
    nested(
      proto.HttpConnectionManager.internalAddressConfig,
      message(nested(proto.InternalAddressConfig.cidrRanges, cidrRange(["0.0.0.0", 32]))),
    ),
    duration(proto.HttpConnectionManager.requestHeadersTimeout, limits.headerTimeoutMs ?? HEADER_MS),
    limits.headerBytes === undefined
      ? undefined
      : uint32Value(proto.HttpConnectionManager.maxRequestHeadersKb, Math.ceil(limits.headerBytes / 1024)),
    boolValue(proto.HttpConnectionManager.normalizePath, true),
    flag(proto.HttpConnectionManager.mergeSlashes, true),
    enumValue(
      proto.HttpConnectionManager.serverHeaderTransformation,
      proto.ServerHeaderTransformation.PASS_THROUGH,
    ),
    nested(proto.HttpConnectionManager.commonHttpProtocolOptions, commonOptions(limits)),
    enumValue(
      proto.HttpConnectionManager.pathWithEscapedSlashesAction,
      proto.PathWithEscapedSlashesAction.KEEP_UNCHANGED,
    ),
    nestedEach(proto.HttpConnectionManager.originalIpDetectionExtensions, detections(shape.trust)),
    flag(proto.HttpConnectionManager.preserveExternalRequestId, shape.trust.type !== "nobody"),
    nested(proto.HttpConnectionManager.localReplyConfig, localReplies(shape.badRequests)),
    nested(
      proto.HttpConnectionManager.schemeHeaderTransformation,
      message(flag(proto.SchemeHeaderTransformation.matchUpstream, true)),
    ),
    shape.early.length === 0
      ? undefined
      : nested(proto.HttpConnectionManager.earlyHeaderMutationExtensions, earlyMutation(shape.early)),
    boolValue(proto.HttpConnectionManager.streamErrorOnInvalidHttpMessage, true),
    forwardedCertificate(shape.clientCertificate),
  );
  return message(
    text(proto.Filter.name, "envoy.filters.network.http_connection_manager"),
    nested(
      proto.Filter.typedConfig,
      any("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", config),
    ),
  );
}

/** What a client itself says of its certificate is removed in any case. */
function forwardedCertificate(
  parts: ForwardedParts | undefined,
): readonly EncodedField<proto.HttpConnectionManager>[] {
  if (parts === undefined) return [];
  const details = message(
    flag(proto.SetCurrentClientCertDetails.cert, parts === "Certificate"),
    flag(proto.SetCurrentClientCertDetails.dns, true),
    flag(proto.SetCurrentClientCertDetails.uri, true),
  );
  return [
    enumValue(
      proto.HttpConnectionManager.forwardClientCertDetails,
      proto.ForwardClientCertDetails.SANITIZE_SET,
    ),
    nested(proto.HttpConnectionManager.setCurrentClientCertDetails, details),
  ];
}

/** HTTP/1.0 is served as HTTP/1.1 is: with a Host. */
function http1Options(): Message<proto.Http1ProtocolOptions> {
  return message(
    flag(proto.Http1ProtocolOptions.acceptHttp10, true),
    flag(proto.Http1ProtocolOptions.enableTrailers, true),
  );
}

function http2Options(limits: ClientLimits): Message<proto.Http2ProtocolOptions> {
  return message(
    uint32Value(
      proto.Http2ProtocolOptions.maxConcurrentStreams,
      limits.concurrentStreams ?? CONCURRENT_STREAMS,
    ),
    uint32Value(proto.Http2ProtocolOptions.initialStreamWindowSize, STREAM_WINDOW_BYTES),
    uint32Value(proto.Http2ProtocolOptions.initialConnectionWindowSize, CONNECTION_WINDOW_BYTES),
    flag(proto.Http2ProtocolOptions.allowConnect, true),
  );
}

function commonOptions(limits: ClientLimits): Message<proto.HttpProtocolOptions> {
  return message(
    duration(proto.HttpProtocolOptions.idleTimeout, limits.idleMs ?? IDLE_MS),
    uint32Value(proto.HttpProtocolOptions.maxHeadersCount, limits.headerCount ?? HEADER_COUNT),
  );
}

function webSockets(filters: HttpShape["upgradeFilters"]): Message<proto.UpgradeConfig> {
  return message(
    text(proto.UpgradeConfig.upgradeType, "websocket"),
    nestedEach(proto.UpgradeConfig.filters, filters),
  );
}

function earlyMutation(mutations: HttpShape["early"]): Message<proto.TypedExtensionConfig> {
  return extension(
    "mergeway.early",
    "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
    message(nestedEach(proto.EarlyHeaderMutation.mutations, mutations.map(headerMutation))),
  );
}

/**
 * Tried in order until one finds an address. With hops, Envoy takes the peer for the client of a
 * list that is too short: so the entries before the outermost are asked for, one by one.
 */
function detections(trust: HttpShape["trust"]): readonly Message<proto.TypedExtensionConfig>[] {
  switch (trust.type) {
    case "nobody":
      return [];
    case "hops":
      return Array.from({ length: trust.hops }, (_, index) =>
        detection(uint(proto.XffConfig.xffNumTrustedHops, trust.hops - index)),
      );
    case "networks": {
      const trusted = message(nestedEach(proto.XffTrustedCidrs.cidrs, trust.cidrs.map(cidrRange)));
      return [detection(nested(proto.XffConfig.xffTrustedCidrs, trusted))];
    }
  }
}

function detection(how: EncodedField<proto.XffConfig>): Message<proto.TypedExtensionConfig> {
  const type = "envoy.extensions.http.original_ip_detection.xff.v3.XffConfig";
  return extension("forwarded-for", type, message(how));
}

function scopedRoutes(scopeHeader: string): Message<proto.ScopedRoutes> {
  const extractor = message(
    text(proto.HeaderValueExtractor.name, scopeHeader),
    text(proto.HeaderValueExtractor.elementSeparator, ":"),
    explicitUint(proto.HeaderValueExtractor.index, 0),
  );
  const fragment = message(nested(proto.FragmentBuilder.headerValueExtractor, extractor));
  const scopes = nested(proto.ScopedRds.scopedRdsConfigSource, adsSource({ waits: true }));
  return message(
    text(proto.ScopedRoutes.name, "scopes"),
    nested(proto.ScopedRoutes.scopeKeyBuilder, message(nested(proto.ScopeKeyBuilder.fragments, fragment))),
    nested(proto.ScopedRoutes.rdsConfigSource, adsSource()),
    nested(proto.ScopedRoutes.scopedRds, message(scopes)),
  );
}

/**
 * The first that fits is said. A client that a guard does not let in stays 403, whatever else its
 * request is. A backend that breaks off or talks nonsense is 502; Envoy would call it unavailable.
 * What is refused as malformed is 400. A backend at its limits is 503 as in Envoy, with words that
 * say so.
 */
function localReplies(badRequests: readonly Message<proto.HeaderMatcher>[]): Message<proto.LocalReplyConfig> {
  const refused = statusIs(403, "refused");
  const addressDenied = message(
    nested(proto.ResponseMapper.filter, allOf(refused, detailsFilter("==", ADDRESS_DENIED))),
    nested(proto.ResponseMapper.body, inlineString("clients of this address are not served\n")),
  );
  // A service that is asked about a request may refuse it with any status, and words of its own.
  const own = detailsFilter("!=", AUTHENTICATION_DENIED);
  const rateLimited = message(
    nested(proto.ResponseMapper.filter, allOf(statusIs(429, "limited"), own)),
    nested(proto.ResponseMapper.body, inlineString("too many requests\n")),
  );
  const bodyTooLarge = message(
    nested(proto.ResponseMapper.filter, allOf(statusIs(413, "large"), own)),
    nested(proto.ResponseMapper.body, inlineString("the request body is too large\n")),
  );
  const badRequest = badRequests.map((header) =>
    message(
      nested(proto.ResponseMapper.filter, allOf(refused, headerFilter(header))),
      uint32Value(proto.ResponseMapper.statusCode, 400),
      nested(proto.ResponseMapper.body, inlineString("the request is malformed")),
    ),
  );
  const overflow = message(
    nested(proto.ResponseMapper.filter, responseFlags("UO")),
    nested(proto.ResponseMapper.body, inlineString("too many requests to this host are in flight\n")),
    nested(proto.ResponseMapper.headersToAdd, headerOption("retry-after", "1", "overwrite")),
  );
  const brokenBackend = message(
    nested(proto.ResponseMapper.filter, responseFlags("UC", "UR", "UPE")),
    uint32Value(proto.ResponseMapper.statusCode, 502),
  );
  return message(
    nestedEach(proto.LocalReplyConfig.mappers, [
      addressDenied,
      ...badRequest,
      rateLimited,
      bodyTooLarge,
      overflow,
      brokenBackend,
    ]),
  );
}

function allOf(...filters: readonly Message<proto.AccessLogFilter>[]): Message<proto.AccessLogFilter> {
  const all = message(nestedEach(proto.AndFilter.filters, filters));
  return message(nested(proto.AccessLogFilter.andFilter, all));
}

function statusIs(status: number, key: string): Message<proto.AccessLogFilter> {
  const value = message(
    uint(proto.RuntimeUInt32.defaultValue, status),
    text(proto.RuntimeUInt32.runtimeKey, `mergeway.${key}`),
  );
  const comparison = message(nested(proto.ComparisonFilter.value, value));
  const filter = message(nested(proto.StatusCodeFilter.comparison, comparison));
  return message(nested(proto.AccessLogFilter.statusCodeFilter, filter));
}

function headerFilter(header: Message<proto.HeaderMatcher>): Message<proto.AccessLogFilter> {
  const filter = message(nested(proto.HeaderFilter.header, header));
  return message(nested(proto.AccessLogFilter.headerFilter, filter));
}

function responseFlags(...flags: readonly string[]): Message<proto.AccessLogFilter> {
  const filter = message(texts(proto.ResponseFlagFilter.flags, flags));
  return message(nested(proto.AccessLogFilter.responseFlagFilter, filter));
}

function detailsFilter(comparison: "==" | "!=", details: string): Message<proto.AccessLogFilter> {
  const expression = message(
    text(proto.ExpressionFilter.expression, `response.code_details ${comparison} '${details}'`),
  );
  const filter = message(
    text(proto.ExtensionFilter.name, "envoy.access_loggers.extension_filters.cel"),
    nested(
      proto.ExtensionFilter.typedConfig,
      any("envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter", expression),
    ),
  );
  return message(nested(proto.AccessLogFilter.extensionFilter, filter));
}
