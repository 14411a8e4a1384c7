/**
 * The table as a static configuration of Envoy: one listener for HTTP with a virtual host per
 * tenant, one for HTTPS with a filter chain per server name. Paths are normalised, request ids and
 * statistics are on, the access log is off: what Mergeway does by default as well.
 */

import {
  certificateFile,
  GRPC_SERVICE,
  HTTP_ROUTES,
  hostOf,
  keyFile,
  prefixOf,
  type World,
} from "./world.ts";

type Json = Readonly<Record<string, unknown>>;

const HTTP_MANAGER =
  "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const TLS_CONTEXT = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";
const TLS_INSPECTOR = "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector";
const HTTP_OPTIONS = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

export function envoyConfig(world: World, ports: { readonly http: number; readonly tls: number }): string {
  const tenants = Array.from({ length: world.tenants }, (_, tenant) => tenant);
  const hosts = tenants.map(virtualHost);
  return JSON.stringify({
    static_resources: {
      listeners: [
        {
          name: "http",
          address: address(ports.http),
          filter_chains: [{ filters: [manager("http", hosts)] }],
        },
        {
          name: "tls",
          address: address(ports.tls),
          listener_filters: [{ name: "tls_inspector", typed_config: { "@type": TLS_INSPECTOR } }],
          filter_chains: tenants.map((tenant) => ({
            filter_chain_match: { server_names: [hostOf(tenant)] },
            filters: [manager("https", [hosts[tenant] as Json])],
            transport_socket: { name: "tls", typed_config: tlsContext(world, tenant) },
          })),
        },
      ],
      clusters: tenants.flatMap((tenant) => [
        cluster(`web-${tenant}`, world.backendPort, "http_protocol_options"),
        cluster(`grpc-${tenant}`, world.grpcPort, "http2_protocol_options"),
      ]),
    },
  });
}

function address(port: number): Json {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}

function manager(name: string, hosts: readonly Json[]): Json {
  return {
    name: "http_connection_manager",
    typed_config: {
      "@type": HTTP_MANAGER,
      stat_prefix: name,
      use_remote_address: true,
      strip_any_host_port: true,
      normalize_path: true,
      merge_slashes: true,
      route_config: { name, virtual_hosts: hosts },
      http_filters: [{ name: "router", typed_config: { "@type": ROUTER } }],
    },
  };
}

function virtualHost(tenant: number): Json {
  const route = (prefix: string, cluster: string): Json => ({
    match: { path_separated_prefix: prefix },
    route: { cluster, timeout: "0s" },
  });
  return {
    name: hostOf(tenant),
    domains: [hostOf(tenant)],
    routes: [
      ...Array.from({ length: HTTP_ROUTES }, (_, at) => route(prefixOf(at), `web-${tenant}`)),
      route(`/${GRPC_SERVICE}`, `grpc-${tenant}`),
    ],
  };
}

function tlsContext(world: World, tenant: number): Json {
  return {
    "@type": TLS_CONTEXT,
    common_tls_context: {
      alpn_protocols: ["h2", "http/1.1"],
      tls_certificates: [
        {
          certificate_chain: { filename: certificateFile(world, tenant) },
          private_key: { filename: keyFile(world, tenant) },
        },
      ],
    },
  };
}

function cluster(name: string, port: number, protocol: string): Json {
  return {
    name,
    type: "STATIC",
    connect_timeout: "5s",
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }],
    },
    circuit_breakers: {
      thresholds: [{ max_connections: 4096, max_pending_requests: 4096, max_requests: 16384 }],
    },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": HTTP_OPTIONS,
        explicit_http_config: { [protocol]: {} },
      },
    },
  };
}
