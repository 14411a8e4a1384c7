/**
 * Listeners, filter chains and their TLS (envoy.config.listener.v3 and the network filters that it
 * names).
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
  text,
  texts,
  uint,
} from "../wire/protobuf.ts";
import { BUFFER_BYTES, sdsSecret, tlsSocket } from "./cluster.ts";
import {
  adsSource,
  any,
  boolValue,
  type Cidr,
  cidrRange,
  duration,
  extension,
  inlineBytes,
  matcherExtension,
  socketAddress,
  uint32Value,
} from "./core.ts";
import { type AdmissionShape, addressMatcher } from "./guards.ts";

export interface ListenerShape {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly chains: readonly Message<proto.FilterChain>[];
  /** Reads the client's hello, so that chains can be chosen by it. */
  readonly inspectsTls: boolean;
  /** Reads a header of the PROXY protocol before everything else. */
  readonly proxyProtocol?: "required" | "optional" | undefined;
  /** False: it has no socket. */
  readonly bound?: boolean;
  /** Of connections; those of requests are in the HTTP connection manager. */
  readonly accessLogs?: readonly Message<proto.AccessLog>[];
}

export function tcpListener(shape: ListenerShape): Message<proto.Listener> {
  const inspector = message(
    text(proto.ListenerFilter.name, "envoy.filters.listener.tls_inspector"),
    nested(
      proto.ListenerFilter.typedConfig,
      any("envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", message()),
    ),
  );
  return message(
    text(proto.Listener.name, shape.name),
    nested(proto.Listener.address, socketAddress(shape.address, shape.port)),
    nestedEach(proto.Listener.filterChains, shape.chains),
    uint32Value(proto.Listener.perConnectionBufferLimitBytes, BUFFER_BYTES),
    shape.proxyProtocol === undefined
      ? undefined
      : nested(proto.Listener.listenerFilters, proxyProtocol(shape.proxyProtocol)),
    shape.inspectsTls ? nested(proto.Listener.listenerFilters, inspector) : undefined,
    duration(proto.Listener.listenerFiltersTimeout, 10_000),
    nestedEach(proto.Listener.accessLog, shape.accessLogs ?? []),
    boolValue(proto.Listener.bindToPort, shape.bound),
    text(proto.Listener.statPrefix, "port"),
  );
}

function proxyProtocol(need: "required" | "optional"): Message<proto.ListenerFilter> {
  const config = message(flag(proto.ProxyProtocol.allowRequestsWithoutProxyProtocol, need === "optional"));
  return message(
    text(proto.ListenerFilter.name, "envoy.filters.listener.proxy_protocol"),
    nested(
      proto.ListenerFilter.typedConfig,
      any("envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol", config),
    ),
  );
}

export function udpListener(
  shape: Pick<ListenerShape, "name" | "address" | "port">,
  proxy: Message<proto.Any>,
): Message<proto.Listener> {
  const filter = message(
    text(proto.ListenerFilter.name, "envoy.filters.udp_listener.udp_proxy"),
    nested(proto.ListenerFilter.typedConfig, proxy),
  );
  return message(
    text(proto.Listener.name, shape.name),
    nested(proto.Listener.address, socketAddress(shape.address, shape.port, "udp")),
    nested(proto.Listener.listenerFilters, filter),
    nested(proto.Listener.udpListenerConfig, message()),
    text(proto.Listener.statPrefix, "port"),
  );
}

export interface UdpProxyShape {
  readonly cluster: string;
  readonly idleTimeoutMs: number;
  /** Whose datagrams are forwarded, and where those of others go; absent: everybody's are. */
  readonly admission?: { readonly shape: AdmissionShape; readonly others: string } | undefined;
}

export function udpProxy({ cluster, idleTimeoutMs, admission }: UdpProxyShape): Message<proto.Any> {
  const route = (to: string): Message<proto.XdsExtension> =>
    matcherExtension(
      "route",
      "envoy.extensions.filters.udp.udp_proxy.v3.Route",
      message(text(proto.UdpRoute.cluster, to)),
    );
  const config = message(
    text(proto.UdpProxyConfig.statPrefix, "udp"),
    duration(proto.UdpProxyConfig.idleTimeout, idleTimeoutMs),
    nested(
      proto.UdpProxyConfig.matcher,
      admission === undefined
        ? message(nested(proto.Matcher.onNoMatch, message(nested(proto.OnMatch.action, route(cluster)))))
        : addressMatcher(admission.shape, route(cluster), route(admission.others)),
    ),
  );
  return any("envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig", config);
}

export interface ChainShape {
  readonly name: string;
  /** Patterns; empty: whatever no other chain takes. */
  readonly serverNames: readonly string[];
  /** Client addresses; absent: whatever no other chain with the same names takes. */
  readonly sources?: readonly Cidr[] | undefined;
  readonly tls: boolean;
  readonly transportSocket?: Message<proto.TransportSocket> | undefined;
  readonly filter: Message<proto.Filter>;
}

export function filterChain(shape: ChainShape): Message<proto.FilterChain> {
  const match = message(
    nestedEach(proto.FilterChainMatch.sourcePrefixRanges, (shape.sources ?? []).map(cidrRange)),
    shape.tls ? text(proto.FilterChainMatch.transportProtocol, "tls") : undefined,
    texts(proto.FilterChainMatch.serverNames, shape.serverNames),
  );
  return message(
    match.length === 0 ? undefined : nested(proto.FilterChain.filterChainMatch, match),
    nested(proto.FilterChain.filters, shape.filter),
    nested(proto.FilterChain.transportSocket, shape.transportSocket),
    text(proto.FilterChain.name, shape.name),
    shape.transportSocket === undefined
      ? undefined
      : duration(proto.FilterChain.transportSocketConnectTimeout, 5_000),
  );
}

export interface TcpProxyShape {
  readonly clusters: readonly { readonly name: string; readonly weight: number }[];
  readonly idleTimeoutMs: number;
}

export function tcpProxy({ clusters, idleTimeoutMs }: TcpProxyShape): Message<proto.Filter> {
  const [only] = clusters;
  const weighted = message(
    nestedEach(
      proto.TcpWeightedCluster.clusters,
      clusters.map(({ name, weight }) =>
        message(text(proto.TcpClusterWeight.name, name), uint(proto.TcpClusterWeight.weight, weight)),
      ),
    ),
  );
  const config = message(
    text(proto.TcpProxy.statPrefix, "tcp"),
    clusters.length === 1 ? text(proto.TcpProxy.cluster, only?.name) : undefined,
    uint32Value(proto.TcpProxy.maxConnectAttempts, 3),
    duration(proto.TcpProxy.idleTimeout, idleTimeoutMs),
    clusters.length === 1 ? undefined : nested(proto.TcpProxy.weightedClusters, weighted),
  );
  return message(
    text(proto.Filter.name, "envoy.filters.network.tcp_proxy"),
    nested(proto.Filter.typedConfig, any("envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", config)),
  );
}

export interface DownstreamTlsShape {
  readonly certificates: { readonly bySni: SniShape } | { readonly secrets: readonly string[] };
  readonly alpn: readonly string[];
  readonly minVersion?: "1.2" | "1.3" | undefined;
  readonly maxVersion?: "1.2" | "1.3" | undefined;
  readonly clients?: ClientValidationShape | undefined;
}

export interface SniShape {
  /** Asked for when a client names no server. */
  readonly withoutName: string;
  /**
   * Names whose certificates are asked for before any client does. They are part of the filter
   * chain.
   */
  readonly ahead?: readonly string[];
}

export interface ClientValidationShape {
  readonly required: boolean;
  /** PEM; empty: no certificate is ever valid. */
  readonly authorities: string;
  /** `DNS:alice.example`: the certificate must have one of them. Absent: any. */
  readonly subjectAltNames?: readonly string[] | undefined;
}

/**
 * Mozilla's intermediate profile of server-side TLS, the post-quantum hybrid first. Envoy's ciphers
 * are those of the profile by default.
 */
const GROUPS: readonly string[] = ["X25519MLKEM768", "X25519", "P-256", "P-384"];

/** The digest of no certificate. */
const NOBODY: string = "0".repeat(64);

export function downstreamTls(shape: DownstreamTlsShape): Message<proto.TransportSocket> {
  const { certificates, clients } = shape;
  const onDemand = "bySni" in certificates;
  const parameters = message(
    enumValue(proto.TlsParameters.tlsMinimumProtocolVersion, versionOf(shape.minVersion)),
    enumValue(proto.TlsParameters.tlsMaximumProtocolVersion, versionOf(shape.maxVersion)),
    texts(proto.TlsParameters.ecdhCurves, GROUPS),
  );
  const common = message(
    nested(proto.CommonTlsContext.tlsParams, parameters),
    clients === undefined
      ? undefined
      : nested(proto.CommonTlsContext.validationContext, clientValidation(clients)),
    texts(proto.CommonTlsContext.alpnProtocols, shape.alpn),
    onDemand
      ? undefined
      : nestedEach(
          proto.CommonTlsContext.tlsCertificateSdsSecretConfigs,
          certificates.secrets.map(sdsSecret),
        ),
    onDemand
      ? nested(proto.CommonTlsContext.customTlsCertificateSelector, certificateBySni(certificates.bySni))
      : undefined,
  );
  const context = message(
    nested(proto.DownstreamTlsContext.commonTlsContext, common),
    boolValue(proto.DownstreamTlsContext.requireClientCertificate, clients?.required),
    // The selector insists on both: a resumed session would skip it.
    onDemand ? flag(proto.DownstreamTlsContext.disableStatelessSessionResumption, true) : undefined,
    onDemand ? flag(proto.DownstreamTlsContext.disableStatefulSessionResumption, true) : undefined,
  );
  return tlsSocket(any("envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", context));
}

function versionOf(version: "1.2" | "1.3" | undefined): EnumValue<proto.TlsProtocol> | undefined {
  if (version === undefined) return undefined;
  return version === "1.2" ? proto.TlsProtocol.TLSv1_2 : proto.TlsProtocol.TLSv1_3;
}

function clientValidation({
  required,
  authorities,
  subjectAltNames: names,
}: ClientValidationShape): Message<proto.CertificateValidationContext> {
  const { ACCEPT_UNTRUSTED } = proto.TrustChainVerification;
  // An empty list of Envoy's means any name.
  const nobody = authorities === "" || names?.length === 0;
  if (!nobody || (!required && authorities !== "")) {
    return message(
      nested(proto.CertificateValidationContext.trustedCa, inlineBytes(authorities)),
      required
        ? undefined
        : enumValue(proto.CertificateValidationContext.trustChainVerification, ACCEPT_UNTRUSTED),
      required
        ? nestedEach(
            proto.CertificateValidationContext.matchTypedSubjectAltNames,
            (names ?? []).map(nameMatcher),
          )
        : undefined,
    );
  }
  return required
    ? message(texts(proto.CertificateValidationContext.verifyCertificateHash, [NOBODY]))
    : message(enumValue(proto.CertificateValidationContext.trustChainVerification, ACCEPT_UNTRUSTED));
}

/** A type that is not known matches no certificate. */
function nameMatcher(name: string): Message<proto.SubjectAltNameMatcher> {
  const [type = "", value] = [name.slice(0, name.indexOf(":")), name.slice(name.indexOf(":") + 1)];
  const types: Readonly<Record<string, EnumValue<proto.SanType>>> = proto.SanType;
  return message(
    enumValue(proto.SubjectAltNameMatcher.sanType, types[type] ?? proto.SanType.OTHER_NAME),
    nested(
      proto.SubjectAltNameMatcher.matcher,
      message(text(proto.StringMatcher.exact, value), flag(proto.StringMatcher.ignoreCase, type === "DNS")),
    ),
  );
}

function certificateBySni({ withoutName, ahead = [] }: SniShape): Message<proto.TypedExtensionConfig> {
  const mapper = extension(
    "envoy.tls.certificate_mappers.sni",
    "envoy.extensions.transport_sockets.tls.cert_mappers.sni.v3.SNI",
    message(text(proto.SniMapper.defaultValue, withoutName)),
  );
  return extension(
    "envoy.tls.certificate_selectors.on_demand_secret",
    "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config",
    message(
      nested(proto.OnDemandSecret.configSource, adsSource()),
      nested(proto.OnDemandSecret.certificateMapper, mapper),
      texts(proto.OnDemandSecret.prefetchSecretNames, ahead),
    ),
  );
}
