/** Clusters and their endpoints (envoy.config.cluster.v3, envoy.config.endpoint.v3). */

import type { LoadBalancing } from "../../../plan/load-balancing.ts";
import { MIN_CONCURRENT_RETRIES, RETRY_BUDGET_PERCENT } from "../../../plan/retry-limits.ts";
import * as proto from "../wire/proto.ts";
import {
  double,
  enumValue,
  flag,
  type Message,
  map,
  message,
  nested,
  nestedEach,
  text,
  texts,
} from "../wire/protobuf.ts";
import { adsSource, any, duration, exactMatcher, inlineBytes, socketAddress, uint32Value } from "./core.ts";
import { loadBalancing } from "./load-balancing.ts";

export interface ClusterShape {
  readonly name: string;
  /** Under which its endpoints are asked for. */
  readonly service: string;
  /** `auto` lets TLS negotiate. */
  readonly http: "1" | "2" | "auto";
  readonly connectTimeoutMs: number;
  readonly transportSocket?: Message<proto.TransportSocket> | undefined;
  readonly weighted?: boolean;
  /** Absent: round robin. */
  readonly balancing?: LoadBalancing | undefined;
  /** 0: no limit. */
  readonly limits: {
    readonly connections: number;
    readonly requests: number;
    /** Absent: as many as requests. */
    readonly pendingRequests?: number;
  };
  /** Whether retries have the budget of every data plane. */
  readonly hasRetryBudget?: boolean;
}

/** Envoy has limits of its own for what is not set: 1,024. */
const UNLIMITED = 1_000_000_000;
/**
 * What is read of a connection before the other side has taken it, to each backend and
 * (listener.ts) from each client.
 */
export const BUFFER_BYTES: number = 256 * 1024;
/**
 * Of HTTP/2; Envoy's own defaults let a backend fill 16 MiB a stream before it has to wait for the
 * client.
 */
export const STREAM_WINDOW_BYTES: number = 256 * 1024;
export const CONNECTION_WINDOW_BYTES: number = 1024 * 1024;

const retryBudget: Message<proto.RetryBudget> = message(
  nested(proto.RetryBudget.budgetPercent, message(double(proto.Percent.value, RETRY_BUDGET_PERCENT))),
  uint32Value(proto.RetryBudget.minRetryConcurrency, MIN_CONCURRENT_RETRIES),
);

/**
 * Circuit breakers: the only limits that Envoy can hold here. Filter chains are shared by all
 * tenants and know no owner, but a cluster is one backend's. Requests that wait for a connection
 * are limited like those that have one: all of them may wait while the first connections are being
 * made. Of the two priorities no route uses the high one.
 */
function circuitBreakers({
  limits: { connections, requests, pendingRequests = requests },
  hasRetryBudget = false,
}: ClusterShape): Message<proto.CircuitBreakers> {
  const thresholds = message(
    uint32Value(proto.Thresholds.maxConnections, connections || UNLIMITED),
    uint32Value(proto.Thresholds.maxPendingRequests, pendingRequests || UNLIMITED),
    uint32Value(proto.Thresholds.maxRequests, requests || UNLIMITED),
    hasRetryBudget
      ? nested(proto.Thresholds.retryBudget, retryBudget)
      : uint32Value(proto.Thresholds.maxRetries, UNLIMITED),
  );
  return message(nested(proto.CircuitBreakers.thresholds, thresholds));
}

export function cluster(shape: ClusterShape): Message<proto.Cluster> {
  return message(
    text(proto.Cluster.name, shape.name),
    enumValue(proto.Cluster.type, proto.DiscoveryType.EDS),
    nested(
      proto.Cluster.edsClusterConfig,
      message(
        nested(proto.EdsClusterConfig.edsConfig, adsSource({ waits: true })),
        shape.service === shape.name ? undefined : text(proto.EdsClusterConfig.serviceName, shape.service),
      ),
    ),
    duration(proto.Cluster.connectTimeout, shape.connectTimeoutMs),
    uint32Value(proto.Cluster.perConnectionBufferLimitBytes, BUFFER_BYTES),
    nested(proto.Cluster.circuitBreakers, circuitBreakers(shape)),
    nested(proto.Cluster.transportSocket, shape.transportSocket),
    shape.balancing === undefined
      ? undefined
      : nested(proto.Cluster.loadBalancingPolicy, loadBalancing(shape.balancing)),
    shape.weighted === true ? nested(proto.Cluster.commonLbConfig, localityWeighted()) : undefined,
    map(proto.Cluster.typedExtensionProtocolOptions, [
      ["envoy.extensions.upstreams.http.v3.HttpProtocolOptions", httpOptions(shape.http)],
    ]),
  );
}

function localityWeighted(): Message<proto.CommonLbConfig> {
  return message(nested(proto.CommonLbConfig.localityWeightedLbConfig, message()));
}

/**
 * Who closes an idle connection first must be this side: a request that meets a backend's hanging
 * up is lost. Servers do that after 2 seconds (Gunicorn) or 5 (Node, Apache, Uvicorn), unless they
 * are told otherwise, and an idle connection costs as much memory as eight routes. HTTP/2 says
 * goodbye, and its connections are few.
 */
const IDLE_MS: Readonly<Record<ClusterShape["http"], number>> = { "1": 1_500, auto: 1_500, "2": 60_000 };

function httpOptions(http: ClusterShape["http"]): Message<proto.Any> {
  // Trailers of a backend reach the client in HTTP/1.1 only when both sides are told so.
  const http1 = message(flag(proto.Http1ProtocolOptions.enableTrailers, true));
  const http2 = message(
    uint32Value(proto.Http2ProtocolOptions.initialStreamWindowSize, STREAM_WINDOW_BYTES),
    uint32Value(proto.Http2ProtocolOptions.initialConnectionWindowSize, CONNECTION_WINDOW_BYTES),
  );
  const explicit = (): Message<proto.ExplicitHttpConfig> =>
    message(
      http === "2"
        ? nested(proto.ExplicitHttpConfig.http2ProtocolOptions, http2)
        : nested(proto.ExplicitHttpConfig.httpProtocolOptions, http1),
    );
  const auto = (): Message<proto.AutoHttpConfig> =>
    message(
      nested(proto.AutoHttpConfig.httpProtocolOptions, http1),
      nested(proto.AutoHttpConfig.http2ProtocolOptions, http2),
    );
  const options = message(
    nested(
      proto.UpstreamHttpOptions.commonHttpProtocolOptions,
      message(duration(proto.HttpProtocolOptions.idleTimeout, IDLE_MS[http])),
    ),
    http === "auto"
      ? nested(proto.UpstreamHttpOptions.autoConfig, auto())
      : nested(proto.UpstreamHttpOptions.explicitHttpConfig, explicit()),
  );
  return any("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", options);
}

export interface LocalityShape {
  readonly name: string;
  readonly weight?: number;
  readonly endpoints: readonly { readonly address: string; readonly port: number }[];
}

export function loadAssignment(
  service: string,
  localities: readonly LocalityShape[],
): Message<proto.ClusterLoadAssignment> {
  return message(
    text(proto.ClusterLoadAssignment.clusterName, service),
    nestedEach(
      proto.ClusterLoadAssignment.endpoints,
      localities.map(({ name, weight, endpoints }) =>
        message(
          nested(proto.LocalityLbEndpoints.locality, message(text(proto.Locality.subZone, name))),
          nestedEach(proto.LocalityLbEndpoints.lbEndpoints, endpoints.map(lbEndpoint)),
          uint32Value(proto.LocalityLbEndpoints.loadBalancingWeight, weight),
        ),
      ),
    ),
  );
}

function lbEndpoint({ address, port }: LocalityShape["endpoints"][number]): Message<proto.LbEndpoint> {
  const endpoint = message(nested(proto.Endpoint.address, socketAddress(address, port)));
  return message(nested(proto.LbEndpoint.endpoint, endpoint));
}

export interface UpstreamTlsShape {
  readonly sni: string;
  readonly names: readonly { readonly type: "dns" | "uri"; readonly value: string }[];
  /** PEM, or the name of a secret that holds them. */
  readonly authorities: { readonly pem: string } | { readonly secret: string };
  readonly clientCertificate?: string | undefined;
  readonly alpn: readonly string[];
}

export function upstreamTls(shape: UpstreamTlsShape): Message<proto.TransportSocket> {
  const names = shape.names.map(({ type, value }) =>
    message(
      enumValue(proto.SubjectAltNameMatcher.sanType, type === "dns" ? proto.SanType.DNS : proto.SanType.URI),
      nested(proto.SubjectAltNameMatcher.matcher, exactMatcher(value)),
    ),
  );
  const own = message(
    "pem" in shape.authorities
      ? nested(proto.CertificateValidationContext.trustedCa, inlineBytes(shape.authorities.pem))
      : undefined,
    nestedEach(proto.CertificateValidationContext.matchTypedSubjectAltNames, names),
  );
  const validation =
    "pem" in shape.authorities
      ? nested(proto.CommonTlsContext.validationContext, own)
      : nested(
          proto.CommonTlsContext.combinedValidationContext,
          message(
            nested(proto.CombinedCertificateValidationContext.defaultValidationContext, own),
            nested(
              proto.CombinedCertificateValidationContext.validationContextSdsSecretConfig,
              sdsSecret(shape.authorities.secret),
            ),
          ),
        );
  const common = message(
    texts(proto.CommonTlsContext.alpnProtocols, shape.alpn),
    shape.clientCertificate === undefined
      ? undefined
      : nested(proto.CommonTlsContext.tlsCertificateSdsSecretConfigs, sdsSecret(shape.clientCertificate)),
    validation,
  );
  const context = message(
    nested(proto.UpstreamTlsContext.commonTlsContext, common),
    text(proto.UpstreamTlsContext.sni, shape.sni),
  );
  return tlsSocket(any("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", context));
}

export function tlsSocket(config: Message<proto.Any>): Message<proto.TransportSocket> {
  return message(
    text(proto.TransportSocket.name, "envoy.transport_sockets.tls"),
    nested(proto.TransportSocket.typedConfig, config),
  );
}

export function sdsSecret(name: string): Message<proto.SdsSecretConfig> {
  return message(
    text(proto.SdsSecretConfig.name, name),
    nested(proto.SdsSecretConfig.sdsConfig, adsSource({ waits: true })),
  );
}
