/**
 * Makes src/dataplanes/envoy/wire/proto.ts: fields and enums of the messages that are written or
 * read, from the descriptors in Envoy's program.
 *
 *     node tools/generate-envoy-proto.ts ENVOY
 *
 * To write another message, or a field with another message in it, name that message below. Fields
 * whose messages are not listed are left out, as nothing could be written into them.
 */
import { writeFileSync } from "node:fs";
import { type Descriptors, descriptorsOf, type MessageField, type MessageType } from "./envoy-descriptors.ts";

export const PROTO_FILE = "src/dataplanes/envoy/wire/proto.ts";

const HTTP_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3";
const HTTP_FILTERS = "envoy.extensions.filters.http";
const TLS = "envoy.extensions.transport_sockets.tls";

/** By what the code calls them: the last part of their names, unless two have the same. */
const MESSAGES: Readonly<Record<string, string>> = {
  ...named(
    "google.protobuf",
    "Any",
    "BoolValue",
    "Duration",
    "Struct",
    "UInt32Value",
    "UInt64Value",
    "Value",
  ),
  ...named("google.rpc", "Status"),
  ...named("google.api.expr.v1alpha1", "Expr", "Expr.Ident", "Expr.Select", "Expr.Call", "Constant"),
  ...named(
    "envoy.config.core.v3",
    "Address",
    "AggregatedConfigSource",
    "CidrRange",
    "ConfigSource",
    "DataSource",
    "ExtensionConfigSource",
    "GrpcService",
    "GrpcService.EnvoyGrpc",
    "HeaderValue",
    "HeaderValueOption",
    "Http1ProtocolOptions",
    "Http2ProtocolOptions",
    "HttpProtocolOptions",
    "Locality",
    "Metadata",
    "Node",
    "RuntimeFractionalPercent",
    "RuntimeUInt32",
    "SchemeHeaderTransformation",
    "SocketAddress",
    "SubstitutionFormatString",
    "TransportSocket",
    "TypedExtensionConfig",
  ),
  ...named("envoy.type.v3", "FractionalPercent", "HttpStatus", "Percent", "TokenBucket"),
  ...named(
    "envoy.type.matcher.v3",
    "HttpRequestHeaderMatchInput",
    "RegexMatchAndSubstitute",
    "RegexMatcher",
    "StringMatcher",
  ),
  ...named("envoy.type.metadata.v3", "MetadataKey", "MetadataKey.PathSegment"),
  ...named(
    "envoy.config.cluster.v3",
    "CircuitBreakers",
    "CircuitBreakers.Thresholds",
    "CircuitBreakers.Thresholds.RetryBudget",
    "Cluster",
    "Cluster.CommonLbConfig",
    "Cluster.CommonLbConfig.LocalityWeightedLbConfig",
    "Cluster.EdsClusterConfig",
    "LoadBalancingPolicy",
  ),
  LoadBalancingChoice: "envoy.config.cluster.v3.LoadBalancingPolicy.Policy",
  ...named("envoy.extensions.load_balancing_policies.common.v3", "ConsistentHashingLbConfig"),
  ...named("envoy.extensions.load_balancing_policies.maglev.v3", "Maglev"),
  HashPolicy: "envoy.config.route.v3.RouteAction.HashPolicy",
  HashHeader: "envoy.config.route.v3.RouteAction.HashPolicy.Header",
  HashCookie: "envoy.config.route.v3.RouteAction.HashPolicy.Cookie",
  HashConnection: "envoy.config.route.v3.RouteAction.HashPolicy.ConnectionProperties",
  ...named(
    "envoy.config.endpoint.v3",
    "ClusterLoadAssignment",
    "Endpoint",
    "LbEndpoint",
    "LocalityLbEndpoints",
  ),
  UpstreamHttpOptions: "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
  ...named("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "AutoHttpConfig", "ExplicitHttpConfig"),
  ...named(
    "envoy.config.listener.v3",
    "Filter",
    "FilterChain",
    "FilterChainMatch",
    "Listener",
    "ListenerFilter",
    "UdpListenerConfig",
  ),
  ...named("envoy.extensions.filters.listener.proxy_protocol.v3", "ProxyProtocol"),
  ...named("envoy.extensions.filters.listener.tls_inspector.v3", "TlsInspector"),
  ...named("envoy.extensions.filters.udp.udp_proxy.v3", "UdpProxyConfig"),
  UdpRoute: "envoy.extensions.filters.udp.udp_proxy.v3.Route",
  ...named("envoy.extensions.filters.network.tcp_proxy.v3", "TcpProxy"),
  TcpWeightedCluster: "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster",
  TcpClusterWeight: "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight",
  ...named(
    `${TLS}.v3`,
    "CertificateValidationContext",
    "CommonTlsContext",
    "CommonTlsContext.CombinedCertificateValidationContext",
    "DownstreamTlsContext",
    "SdsSecretConfig",
    "Secret",
    "SubjectAltNameMatcher",
    "TlsCertificate",
    "TlsParameters",
    "UpstreamTlsContext",
  ),
  OnDemandSecret: `${TLS}.cert_selectors.on_demand_secret.v3.Config`,
  SniMapper: `${TLS}.cert_mappers.sni.v3.SNI`,
  ...named(
    HTTP_MANAGER,
    "HttpConnectionManager",
    "HttpConnectionManager.InternalAddressConfig",
    "HttpConnectionManager.SetCurrentClientCertDetails",
    "HttpConnectionManager.Tracing",
    "HttpConnectionManager.UpgradeConfig",
    "HttpFilter",
    "LocalReplyConfig",
    "Rds",
    "ResponseMapper",
    "ScopedRds",
    "ScopedRoutes",
    "ScopedRoutes.ScopeKeyBuilder",
    "ScopedRoutes.ScopeKeyBuilder.FragmentBuilder",
    "ScopedRoutes.ScopeKeyBuilder.FragmentBuilder.HeaderValueExtractor",
  ),
  ...named("envoy.extensions.http.original_ip_detection.xff.v3", "XffConfig", "XffTrustedCidrs"),
  EarlyHeaderMutation: "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
  ...named("envoy.config.common.mutation_rules.v3", "HeaderMutation", "HeaderMutation.RemoveOnMatch"),
  ...named(
    "envoy.config.accesslog.v3",
    "AccessLog",
    "AccessLogFilter",
    "AndFilter",
    "ComparisonFilter",
    "ExtensionFilter",
    "HeaderFilter",
    "ResponseFlagFilter",
    "StatusCodeFilter",
  ),
  ...named("envoy.extensions.access_loggers.file.v3", "FileAccessLog"),
  ...named("envoy.extensions.access_loggers.stream.v3", "StdoutAccessLog"),
  ...named("envoy.extensions.access_loggers.filters.cel.v3", "ExpressionFilter"),
  ...named("envoy.config.trace.v3", "OpenTelemetryConfig"),
  TracingProvider: "envoy.config.trace.v3.Tracing.Http",
  RouteTracing: "envoy.config.route.v3.Tracing",
  ...named(
    "envoy.config.route.v3",
    "DirectResponseAction",
    "FilterConfig",
    "HeaderMatcher",
    "QueryParameterMatcher",
    "RateLimit",
    "RateLimit.Action.HeaderValueMatch",
    "RateLimit.Action.MaskedRemoteAddress",
    "RateLimit.Action.MetaData",
    "RateLimit.Action.RequestHeaders",
    "RedirectAction",
    "RetryPolicy",
    "RetryPolicy.RetryBackOff",
    "RetryPolicy.RetryHostPredicate",
    "Route",
    "RouteAction",
    "RouteAction.RequestMirrorPolicy",
    "RouteConfiguration",
    "RouteMatch",
    "ScopedRouteConfiguration",
    "VirtualHost",
  ),
  RateLimitAction: "envoy.config.route.v3.RateLimit.Action",
  ScopeKey: "envoy.config.route.v3.ScopedRouteConfiguration.Key",
  ScopeKeyFragment: "envoy.config.route.v3.ScopedRouteConfiguration.Key.Fragment",
  ...named("envoy.extensions.common.ratelimit.v3", "LocalRateLimitDescriptor", "RateLimitDescriptor"),
  RateLimitEntry: "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry",
  ExpressionDescriptor: "envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor",
  ...named(`${HTTP_FILTERS}.cors.v3`, "CorsPolicy"),
  ...named(`${HTTP_FILTERS}.composite.v3`, "CompositePerRoute", "ExecuteFilterAction"),
  CompositeChain: `${HTTP_FILTERS}.composite.v3.FilterChainConfiguration`,
  ...named(
    `${HTTP_FILTERS}.compressor.v3`,
    "Compressor",
    "Compressor.CommonDirectionConfig",
    "Compressor.ResponseDirectionConfig",
  ),
  ...named("envoy.extensions.compression.brotli.compressor.v3", "Brotli"),
  ...named("envoy.extensions.compression.gzip.compressor.v3", "Gzip"),
  ...named("envoy.extensions.compression.zstd.compressor.v3", "Zstd"),
  HeaderToMetadata: `${HTTP_FILTERS}.header_to_metadata.v3.Config`,
  HeaderToMetadataRule: `${HTTP_FILTERS}.header_to_metadata.v3.Config.Rule`,
  HeaderToMetadataKeyValue: `${HTTP_FILTERS}.header_to_metadata.v3.Config.KeyValuePair`,
  HeaderMutationFilter: `${HTTP_FILTERS}.header_mutation.v3.HeaderMutation`,
  HeaderMutationPerRoute: `${HTTP_FILTERS}.header_mutation.v3.HeaderMutationPerRoute`,
  HeaderMutations: `${HTTP_FILTERS}.header_mutation.v3.Mutations`,
  ...named(`${HTTP_FILTERS}.ext_authz.v3`, "BufferSettings", "CheckSettings", "ExtAuthz", "ExtAuthzPerRoute"),
  ...named(
    "envoy.service.auth.v3",
    "AttributeContext",
    "CheckRequest",
    "CheckResponse",
    "DeniedHttpResponse",
    "OkHttpResponse",
  ),
  QueryParameter: "envoy.config.core.v3.QueryParameter",
  AttributeContextPeer: "envoy.service.auth.v3.AttributeContext.Peer",
  AttributeContextRequest: "envoy.service.auth.v3.AttributeContext.Request",
  AttributeContextHttpRequest: "envoy.service.auth.v3.AttributeContext.HttpRequest",
  ...named(
    `${HTTP_FILTERS}.ext_proc.v3`,
    "ExtProcOverrides",
    "ExtProcPerRoute",
    "ExternalProcessor",
    "ProcessingMode",
  ),
  ...named(
    "envoy.service.ext_proc.v3",
    "BodyResponse",
    "HttpBody",
    "ImmediateResponse",
    "ProcessingRequest",
    "ProcessingResponse",
  ),
  ...named(`${HTTP_FILTERS}.local_ratelimit.v3`, "LocalRateLimit"),
  ...named(`${HTTP_FILTERS}.lua.v3`, "Lua", "LuaPerRoute"),
  ...named(`${HTTP_FILTERS}.router.v3`, "Router"),
  ...named(`${HTTP_FILTERS}.stateful_session.v3`, "StatefulSession", "StatefulSessionPerRoute"),
  ...named("envoy.extensions.http.stateful_session.cookie.v3", "CookieBasedSessionState"),
  ...named("envoy.extensions.http.stateful_session.header.v3", "HeaderBasedSessionState"),
  ...named("envoy.type.http.v3", "Cookie", "CookieAttribute"),
  RbacFilter: `${HTTP_FILTERS}.rbac.v3.RBAC`,
  RbacPerRoute: `${HTTP_FILTERS}.rbac.v3.RBACPerRoute`,
  RbacRules: "envoy.config.rbac.v3.RBAC",
  RbacAction: "envoy.config.rbac.v3.Action",
  ...named("envoy.config.rbac.v3", "Permission", "Policy", "Principal"),
  ...named("envoy.extensions.common.matching.v3", "ExtensionWithMatcher"),
  IpMatcher: "envoy.extensions.matching.input_matchers.ip.v3.Ip",
  ...named(
    "xds.type.matcher.v3",
    "Matcher",
    "Matcher.MatcherList",
    "Matcher.MatcherList.FieldMatcher",
    "Matcher.MatcherList.Predicate",
    "Matcher.MatcherList.Predicate.PredicateList",
    "Matcher.MatcherList.Predicate.SinglePredicate",
    "Matcher.OnMatch",
  ),
  XdsStringMatcher: "xds.type.matcher.v3.StringMatcher",
  XdsExtension: "xds.core.v3.TypedExtensionConfig",
  ...named("envoy.service.discovery.v3", "DeltaDiscoveryRequest", "DeltaDiscoveryResponse", "Resource"),
};

const ENUMS: Readonly<Record<string, string>> = {
  ...named("envoy.config.core.v3", "ApiVersion", "SocketAddress.Protocol"),
  HeaderAppendAction: "envoy.config.core.v3.HeaderValueOption.HeaderAppendAction",
  ...named("envoy.type.v3", "FractionalPercent.DenominatorType"),
  ...named("envoy.config.cluster.v3", "Cluster.DiscoveryType"),
  ...named("envoy.type.v3", "StatusCode"),
  RbacRulesAction: "envoy.config.rbac.v3.RBAC.Action",
  ...named("envoy.config.route.v3", "RedirectAction.RedirectResponseCode"),
  ...named(`${HTTP_FILTERS}.ext_proc.v3`, "ProcessingMode.BodySendMode", "ProcessingMode.HeaderSendMode"),
  GzipLevel: "envoy.extensions.compression.gzip.compressor.v3.Gzip.CompressionLevel",
  MetadataSource: "envoy.config.route.v3.RateLimit.Action.MetaData.Source",
  ...named(`${TLS}.v3`, "SubjectAltNameMatcher.SanType", "TlsParameters.TlsProtocol"),
  ...named(`${TLS}.v3`, "CertificateValidationContext.TrustChainVerification"),
  ...named(
    `${HTTP_MANAGER}.HttpConnectionManager`,
    "ForwardClientCertDetails",
    "PathWithEscapedSlashesAction",
    "ServerHeaderTransformation",
  ),
};

/** FieldDescriptorProto.Type, as far as it is written or read. */
const KINDS: ReadonlyMap<number, string> = new Map([
  [1, "Double"],
  [3, "Uint"],
  [4, "Uint"],
  [5, "Uint"],
  [8, "Flag"],
  [9, "Text"],
  [12, "Bytes"],
  [13, "Uint"],
]);
const MESSAGE = 11;
const ENUM = 14;

const HEAD = `/**
 * The messages of Envoy that are written or read here: numbers and types of their fields, as their
 * .proto files have them. Generated by tools/generate-envoy-proto.ts.
 */

import type {
  BytesField,
  DoubleField,
  EnumField,
  EnumValue,
  FlagField,
  MapField,
  NestedField,
  Repeated,
  TextField,
  TextMapField,
  UintField,
} from "./protobuf.ts";
`;

function named(scope: string, ...names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name.split(".").at(-1), `${scope}.${name}`]));
}

export function protoText(descriptors: Descriptors): string {
  const aliases = new Map(
    [...Object.entries(MESSAGES), ...Object.entries(ENUMS)].map(([alias, name]) => [name, alias]),
  );
  const messages = Object.entries(MESSAGES).map(([alias, name]) => messageText(alias, messageOf(name)));
  const enums = Object.entries(ENUMS).map(([alias, name]) => enumText(alias, name));
  return [HEAD, ...messages, ...enums].join("\n");

  function messageOf(name: string): MessageType {
    const type = descriptors.messages.get(name);
    if (type === undefined) throw new Error(`Envoy has no message ${name}`);
    return type;
  }

  function messageText(alias: string, { name, fields }: MessageType): string {
    const lines = [...fields]
      .sort((a, b) => a.number - b.number)
      .flatMap((field) => {
        const type = typeOf(alias, field);
        return type === undefined ? [] : [`  ${camelCase(field.name)}: ${field.number} as ${type},`];
      });
    return constant(alias, name, lines);
  }

  function enumText(alias: string, name: string): string {
    const values = descriptors.enums.get(name)?.values;
    if (values === undefined) throw new Error(`Envoy has no enum ${name}`);
    const lines = Array.from(values, ([value, number]) => `  ${value}: ${number} as EnumValue<${alias}>,`);
    return constant(alias, name, lines);
  }

  function typeOf(owner: string, field: MessageField): string | undefined {
    const { type, typeName, isRepeated } = field;
    const entry = type === MESSAGE ? descriptors.messages.get(typeName) : undefined;
    if (entry?.isMapEntry === true) return mapTypeOf(owner, entry);
    const alias = aliases.get(typeName);
    const isKnown = type === MESSAGE || type === ENUM ? alias !== undefined : KINDS.has(type);
    if (!isKnown) return undefined;
    const kind = type === MESSAGE ? "Nested" : type === ENUM ? "Enum" : KINDS.get(type);
    const single = `${kind}Field<${alias === undefined ? owner : `${owner}, ${alias}`}>`;
    return isRepeated ? `Repeated<${single}>` : single;
  }

  function mapTypeOf(owner: string, entry: MessageType): string | undefined {
    const value = entry.fields.find(({ number }) => number === 2);
    if (value !== undefined && KINDS.get(value.type) === "Text") return `TextMapField<${owner}>`;
    const alias = aliases.get(value?.typeName ?? "");
    return alias === undefined ? undefined : `MapField<${owner}, ${alias}>`;
  }
}

function constant(alias: string, name: string, lines: readonly string[]): string {
  const body = lines.length === 0 ? "{}" : `{\n${lines.join("\n")}\n}`;
  return `export type ${alias} = "${name}";\nexport const ${alias} = ${body};\n`;
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

if (import.meta.main) {
  const [program] = process.argv.slice(2);
  if (program === undefined) throw new Error("usage: node tools/generate-envoy-proto.ts ENVOY");
  writeFileSync(PROTO_FILE, protoText(descriptorsOf(program)));
}
