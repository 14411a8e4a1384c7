/** The bootstrap configuration of an Envoy: its node id, and where its ADS server is. */

import { AGENT_CLUSTER } from "../compile/names.ts";
import { type ReadinessAddress, readinessListener } from "./readiness-listener.ts";

export interface BootstrapOptions {
  readonly node: { readonly id: string; readonly cluster: string };
  /** The socket of the server. */
  readonly server: { readonly path: string };
  readonly admin: { readonly path: string };
  readonly maxConnections: number;
  readonly isTraced?: boolean | undefined;
  /** Where Envoy itself answers readiness probes (readiness-listener.ts); absent: nowhere. */
  readonly readiness?: ReadinessAddress | undefined;
}

/**
 * Where Envoy's tracer would report to. It has no endpoints: spans are made of the log's lines. It
 * is in the bootstrap, so that it is there before any listener names it.
 */
export const SPANS = "mergeway.spans";

const ads = { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" };

/** Reconnect soon after a restart, and rarely while the controller is away for long. */
const retry_back_off = { base_interval: "0.1s", max_interval: "5s" };

/**
 * Several values of a header are one list, as in HTTP itself, not so many chances to match.
 * Expressions are checked for their size by whoever admits them; Envoy's own limit would refuse
 * ordinary ones.
 */
const runtime = {
  "envoy.reloadable_features.match_headers_individually": false,
  "re2.max_program_size.error_level": 100_000,
  // Envoy's own spans are dropped, not sent.
  "tracing.opentelemetry.min_flush_spans": 1_000_000,
};

/**
 * Whatever is counted per backend, host, secret or certificate grows with the tenants, and with
 * names that clients make up; the sums say enough.
 */
const perTenant = [
  { prefix: "cluster." },
  { prefix: "vhost." },
  { prefix: "sds." },
  { contains: ".ssl.certificate." },
];

/**
 * What was needed for a moment (a first start, many connections at once) goes back to the system;
 * the allocator itself waits for five minutes.
 */
const memory = { bytes_to_release: 64 * 1024 * 1024, memory_release_interval: "10s" };

const http2 = {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    explicit_http_config: {
      http2_protocol_options: { connection_keepalive: { interval: "30s", timeout: "10s" } },
    },
  },
};

export function bootstrap(options: BootstrapOptions): object {
  const { node, server, admin, maxConnections, isTraced, readiness } = options;
  return {
    node,
    layered_runtime: {
      // The second layer is what can be changed over the admin socket.
      layers: [
        { name: "mergeway", static_layer: runtime },
        { name: "admin", admin_layer: {} },
      ],
    },
    admin: { address: { pipe: { path: admin.path } } },
    dynamic_resources: {
      ads_config: {
        api_type: "DELTA_GRPC",
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: AGENT_CLUSTER, retry_policy: { retry_back_off } } }],
      },
      cds_config: ads,
      lds_config: ads,
    },
    static_resources: {
      ...(readiness === undefined ? {} : { listeners: [readinessListener(readiness)] }),
      clusters: [
        {
          name: AGENT_CLUSTER,
          type: "STATIC",
          connect_timeout: "2s",
          circuit_breakers: unlimited(maxConnections),
          typed_extension_protocol_options: http2,
          load_assignment: {
            cluster_name: AGENT_CLUSTER,
            endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path: server.path } } } }] }],
          },
        },
        ...(isTraced === true ? [SPANS_CLUSTER] : []),
      ],
    },
    memory_allocator_manager: memory,
    stats_config: { stats_matcher: { exclusion_list: { patterns: perTenant } } },
    overload_manager: {
      resource_monitors: [
        {
          name: "envoy.resource_monitors.global_downstream_max_connections",
          typed_config: {
            "@type":
              "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
            max_active_downstream_connections: maxConnections,
          },
        },
      ],
    },
  };
}

/** Each body that is counted is a request; clients are limited by their connections. */
function unlimited(maxConnections: number): object {
  const most = maxConnections * REQUESTS_PER_CONNECTION;
  return { thresholds: [{ max_requests: most, max_pending_requests: most }] };
}

/** Of HTTP/2, as listeners allow them. */
const REQUESTS_PER_CONNECTION = 128;

const SPANS_CLUSTER = {
  name: SPANS,
  type: "STATIC",
  connect_timeout: "1s",
  typed_extension_protocol_options: http2,
  load_assignment: { cluster_name: SPANS },
};
