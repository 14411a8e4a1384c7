/**
 * Listeners, filter chains and their TLS (envoy.config.listener.v3 and the network filters that it
 * names).
 */

import { flag, type Message, message, nested, nestedEach, text, texts, uint } from "../wire/protobuf.ts";
import { BUFFER_BYTES, sdsSecret } from "./cluster.ts";
import {
  adsSource,
  any,
  boolValue,
  type Cidr,
  cidrRange,
  duration,
  extension,
  inlineBytes,
  socketAddress,
  struct,
  uint32Value,
} from "./core.ts";
import { type AdmissionShape, addressMatcher } from "./guards.ts";

export interface ListenerShape {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly chains: readonly Message[];
  /** Reads the client's hello, so that chains can be chosen by it. */
  readonly inspectsTls: boolean;
  /** Reads a header of the PROXY protocol before everything else. */
  readonly proxyProtocol?: "required" | "optional" | undefined;
  /** False: it has no socket. */
  readonly bound?: boolean;
}

export function tcpListener(shape: ListenerShape): Message {
  const inspector = message(
    text(1, "envoy.filters.listener.tls_inspector"),
    nested(3, any("envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", message())),
  );
  return message(
    text(1, shape.name),
    nested(2, socketAddress(shape.address, shape.port)),
    nestedEach(3, shape.chains),
    uint32Value(5, BUFFER_BYTES),
    shape.proxyProtocol === undefined ? undefined : nested(9, proxyProtocol(shape.proxyProtocol)),
    shape.inspectsTls ? nested(9, inspector) : undefined,
    duration(15, 10_000),
    boolValue(26, shape.bound),
    text(28, "port"),
  );
}

function proxyProtocol(need: "required" | "optional"): Message {
  const config = message(flag(2, need === "optional"));
  return message(
    text(1, "envoy.filters.listener.proxy_protocol"),
    nested(3, any("envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol", config)),
  );
}

export function udpListener(
  shape: Pick<ListenerShape, "name" | "address" | "port">,
  proxy: Message,
): Message {
  const filter = message(text(1, "envoy.filters.udp_listener.udp_proxy"), nested(3, proxy));
  return message(
    text(1, shape.name),
    nested(2, socketAddress(shape.address, shape.port, "udp")),
    nested(9, filter),
    nested(18, message()),
    text(28, "port"),
  );
}

export interface UdpProxyShape {
  readonly cluster: string;
  readonly idleTimeoutMs: number;
  /** Whose datagrams are forwarded, and where those of others go; absent: everybody's are. */
  readonly admission?: { readonly shape: AdmissionShape; readonly others: string } | undefined;
}

export function udpProxy({ cluster, idleTimeoutMs, admission }: UdpProxyShape): Message {
  const route = (to: string): Message =>
    extension("route", "envoy.extensions.filters.udp.udp_proxy.v3.Route", message(text(1, to)));
  const config = message(
    text(1, "udp"),
    duration(3, idleTimeoutMs),
    nested(
      9,
      admission === undefined
        ? message(nested(3, message(nested(2, route(cluster)))))
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
  readonly transportSocket?: Message | undefined;
  readonly filter: Message;
}

export function filterChain(shape: ChainShape): Message {
  const match = message(
    nestedEach(6, (shape.sources ?? []).map(cidrRange)),
    shape.tls ? text(9, "tls") : undefined,
    texts(11, shape.serverNames),
  );
  return message(
    match.length === 0 ? undefined : nested(1, match),
    nested(3, shape.filter),
    nested(6, shape.transportSocket),
    text(7, shape.name),
    shape.transportSocket === undefined ? undefined : duration(9, 5_000),
  );
}

export interface TcpProxyShape {
  readonly clusters: readonly { readonly name: string; readonly weight: number }[];
  readonly idleTimeoutMs: number;
}

export function tcpProxy({ clusters, idleTimeoutMs }: TcpProxyShape): Message {
  const [only] = clusters;
  const weighted = message(
    nestedEach(
      1,
      clusters.map(({ name, weight }) => message(text(1, name), uint(2, weight))),
    ),
  );
  const config = message(
    text(1, "tcp"),
    clusters.length === 1 ? text(2, only?.name) : undefined,
    uint32Value(7, 3),
    duration(8, idleTimeoutMs),
    clusters.length === 1 ? undefined : nested(10, weighted),
  );
  return message(
    text(1, "envoy.filters.network.tcp_proxy"),
    nested(4, any("envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", config)),
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
}

/**
 * Mozilla's intermediate profile of server-side TLS, the post-quantum hybrid first. Envoy's ciphers
 * are those of the profile by default.
 */
const GROUPS: readonly string[] = ["X25519MLKEM768", "X25519", "P-256", "P-384"];

const ACCEPT_UNTRUSTED = 1;
/** The digest of no certificate. */
const NOBODY: string = "0".repeat(64);

export function downstreamTls(shape: DownstreamTlsShape): Message {
  const { certificates, clients } = shape;
  const onDemand = "bySni" in certificates;
  const parameters = message(
    uint(1, versionOf(shape.minVersion)),
    uint(2, versionOf(shape.maxVersion)),
    texts(4, GROUPS),
  );
  const common = message(
    nested(1, parameters),
    clients === undefined ? undefined : nested(3, clientValidation(clients)),
    texts(4, shape.alpn),
    onDemand ? undefined : nestedEach(6, certificates.secrets.map(sdsSecret)),
    onDemand ? nested(16, certificateBySni(certificates.bySni)) : undefined,
  );
  const context = message(
    nested(1, common),
    boolValue(2, clients?.required),
    // The selector insists on both: a resumed session would skip it.
    onDemand ? flag(7, true) : undefined,
    onDemand ? flag(10, true) : undefined,
  );
  return message(
    text(1, "envoy.transport_sockets.tls"),
    nested(3, any("envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", context)),
  );
}

function versionOf(version: "1.2" | "1.3" | undefined): number | undefined {
  if (version === undefined) return undefined;
  return version === "1.2" ? 3 : 4;
}

function clientValidation({ required, authorities }: ClientValidationShape): Message {
  if (!required) {
    return message(
      authorities === "" ? undefined : nested(1, inlineBytes(authorities)),
      uint(10, ACCEPT_UNTRUSTED),
    );
  }
  return authorities === "" ? message(texts(2, [NOBODY])) : message(nested(1, inlineBytes(authorities)));
}

function certificateBySni({ withoutName, ahead = [] }: SniShape): Message {
  const mapper = extension(
    "envoy.tls.certificate_mappers.sni",
    "envoy.extensions.transport_sockets.tls.cert_mappers.sni.v3.SNI",
    message(text(1, withoutName)),
  );
  return extension(
    "envoy.tls.certificate_selectors.on_demand_secret",
    "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config",
    message(nested(1, adsSource()), nested(2, mapper), texts(3, ahead)),
  );
}

/** One JSON object per line on standard output. */
export function stdoutJsonLog(fields: Readonly<Record<string, string>>): Message {
  const format = message(nested(2, struct(fields)));
  return message(
    text(1, "envoy.access_loggers.stdout"),
    nested(4, any("envoy.extensions.access_loggers.stream.v3.StdoutAccessLog", message(nested(1, format)))),
  );
}
