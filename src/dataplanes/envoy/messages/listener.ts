/** Listeners, filter chains and the connection manager (envoy.config.listener.v3 and the filters that it names). */

import {
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
import { sdsSecret } from "./cluster.ts";
import {
  adsSource,
  any,
  boolValue,
  duration,
  extension,
  type HeaderMode,
  headerOption,
  inlineBytes,
  socketAddress,
  struct,
  typeUrl,
  uint32Value,
} from "./core.ts";
import { luaFilter } from "./route.ts";

export interface ListenerShape {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly chains: readonly Message[];
  /** Reads the client's hello, so that chains can be chosen by it. */
  readonly inspectsTls: boolean;
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
    uint32Value(5, 1024 * 1024),
    shape.inspectsTls ? nested(9, inspector) : undefined,
    duration(15, 10_000),
    boolValue(26, shape.bound),
    text(28, "port"),
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

export function udpProxy(cluster: string, idleTimeoutMs: number): Message {
  const action = extension(
    "route",
    "envoy.extensions.filters.udp.udp_proxy.v3.Route",
    message(text(1, cluster)),
  );
  const config = message(
    text(1, "udp"),
    duration(3, idleTimeoutMs),
    nested(9, message(nested(3, message(nested(2, action))))),
  );
  return any("envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig", config);
}

export interface ChainShape {
  readonly name: string;
  /** Patterns; empty: whatever no other chain takes. */
  readonly serverNames: readonly string[];
  readonly tls: boolean;
  readonly transportSocket?: Message | undefined;
  readonly filter: Message;
}

export function filterChain(shape: ChainShape): Message {
  const match = message(shape.tls ? text(9, "tls") : undefined, texts(11, shape.serverNames));
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
  /** Names whose certificates are asked for before any client does. They are part of the filter chain. */
  readonly ahead?: readonly string[];
}

export interface ClientValidationShape {
  readonly required: boolean;
  /** PEM; empty: no certificate is ever valid. */
  readonly authorities: string;
}

const ACCEPT_UNTRUSTED = 1;
/** The digest of no certificate. */
const NOBODY: string = "0".repeat(64);

export function downstreamTls(shape: DownstreamTlsShape): Message {
  const { certificates, clients } = shape;
  const onDemand = "bySni" in certificates;
  const parameters = message(uint(1, versionOf(shape.minVersion)), uint(2, versionOf(shape.maxVersion)));
  const common = message(
    parameters.length === 0 ? undefined : nested(1, parameters),
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

/** Without a value it is removed. */
export interface EarlyHeader {
  readonly name: string;
  readonly value?: string;
  readonly mode?: HeaderMode;
}

/** Without code: it comes as a resource of its own. */
export interface ScriptShape {
  readonly name: string;
  readonly code?: string;
}

export interface HttpShape {
  readonly statPrefix: string;
  /** Headers that are set before anything else reads the request. */
  readonly early: readonly EarlyHeader[];
  readonly scopeHeader: string;
  /** In order of their running. */
  readonly scripts: readonly ScriptShape[];
  readonly trustedHops: number;
  readonly accessLog?: Message | undefined;
  readonly tracing?: Message | undefined;
}

const PASS_THROUGH = 2;
const KEEP_UNCHANGED = 1;

export function httpManager(shape: HttpShape): Message {
  const mutations = shape.early.map(({ name, value, mode = "overwrite" }) =>
    value === undefined ? message(text(1, name)) : message(nested(2, headerOption(name, value, mode))),
  );
  const early = extension(
    "mergeway.early",
    "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
    message(nestedEach(1, mutations)),
  );
  const extractor = message(text(1, shape.scopeHeader), text(2, ":"), explicitUint(3, 0));
  const scopes = message(
    text(1, "scopes"),
    nested(2, message(nested(1, message(nested(1, extractor))))),
    nested(3, adsSource()),
    nested(5, message(nested(1, adsSource({ waits: true })))),
  );
  const config = message(
    text(2, shape.statPrefix),
    nested(31, scopes),
    nestedEach(5, httpFilters(shape.scripts)),
    shape.tracing === undefined ? undefined : nested(7, shape.tracing),
    nested(8, message(flag(5, true))),
    nested(
      9,
      message(uint32Value(2, 128), uint32Value(3, 256 * 1024), uint32Value(4, 1024 * 1024), flag(5, true)),
    ),
    shape.accessLog === undefined ? undefined : nested(13, shape.accessLog),
    boolValue(14, true),
    // The peer itself has been added to the header by then.
    uint(19, shape.trustedHops === 0 ? 0 : shape.trustedHops + 1),
    nestedEach(23, [message(text(1, "websocket"))]),
    duration(24, 300_000),
    flag(21, true),
    // Nobody is internal: no client may steer the router with headers meant for the mesh. An empty list would mean private addresses.
    nested(25, message(nested(2, message(text(1, "0.0.0.0"), uint32Value(2, 32))))),
    duration(41, 10_000),
    boolValue(30, true),
    flag(33, true),
    uint(34, PASS_THROUGH),
    nested(35, message(duration(1, 60_000), uint32Value(2, 128))),
    uint(45, KEEP_UNCHANGED),
    flag(32, shape.trustedHops > 0),
    nested(38, localReplies()),
    nested(48, message(flag(2, true))),
    shape.early.length === 0 ? undefined : nested(52, early),
    boolValue(40, true),
  );
  return message(
    text(1, "envoy.filters.network.http_connection_manager"),
    nested(
      4,
      any("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", config),
    ),
  );
}

/** A backend that breaks off or talks nonsense is 502; Envoy would call it unavailable. */
function localReplies(): Message {
  const brokenBackend = message(nested(9, message(texts(1, ["UC", "UR", "UPE"]))));
  return message(nested(1, message(nested(1, brokenBackend), uint32Value(2, 502))));
}

const LUA = "envoy.extensions.filters.http.lua.v3.Lua";

function httpFilters(scripts: readonly ScriptShape[]): readonly Message[] {
  const discovery = message(nested(1, adsSource({ waits: true })), texts(4, [typeUrl(LUA)]));
  return [
    ...scripts.map(({ name, code }) =>
      message(
        text(1, name),
        code === undefined ? nested(5, discovery) : nested(4, any(LUA, luaFilter(code))),
      ),
    ),
    message(text(1, CORS_FILTER), nested(4, any("envoy.extensions.filters.http.cors.v3.Cors", message()))),
    message(
      text(1, "envoy.filters.http.router"),
      nested(4, any("envoy.extensions.filters.http.router.v3.Router", message(flag(4, true)))),
    ),
  ];
}

export const CORS_FILTER = "envoy.filters.http.cors";

/** One JSON object per line on standard output. */
export function stdoutJsonLog(fields: Readonly<Record<string, string>>): Message {
  const format = message(nested(2, struct(fields)));
  return message(
    text(1, "envoy.access_loggers.stdout"),
    nested(4, any("envoy.extensions.access_loggers.stream.v3.StdoutAccessLog", message(nested(1, format)))),
  );
}
