/**
 * Envoy answers the kubelet's readiness probe itself, so that a pod stays in its Services for as
 * long as Envoy serves, however busy or dead the agent beside it is. The agent sets one runtime
 * value when Envoy has all of its first configuration, and clears it when the pod is to leave. In
 * between nobody is asked. A new Envoy process starts unready.
 */

export interface ReadinessAddress {
  readonly address: string;
  readonly port: number;
}

/** Runtime value: the percentage of probes that succeed, 0 or 100. */
export const READINESS_KEY = "mergeway.ready";

const TYPE = "type.googleapis.com/envoy.extensions.filters";

/** Probes are short, so few connections are enough, and a client cannot keep many of them open. */
const IDLE = "5s";

export function readinessListener({ address, port }: ReadinessAddress): object {
  return {
    name: "mergeway.readiness",
    address: {
      socket_address: { address, port_value: port, ...(address === "::" ? { ipv4_compat: true } : {}) },
    },
    // A flood that uses up all connections must not also take the pod out of its Services.
    ignore_global_conn_limit: true,
    per_connection_buffer_limit_bytes: 4096,
    filter_chains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typed_config: {
              "@type": `${TYPE}.network.http_connection_manager.v3.HttpConnectionManager`,
              stat_prefix: "readiness",
              common_http_protocol_options: { idle_timeout: IDLE },
              request_timeout: IDLE,
              request_headers_timeout: IDLE,
              stream_idle_timeout: IDLE,
              route_config: { name: "mergeway.readiness", virtual_hosts: [virtualHost] },
              http_filters: [
                {
                  name: "envoy.filters.http.router",
                  typed_config: { "@type": `${TYPE}.http.router.v3.Router` },
                },
              ],
            },
          },
        ],
      },
    ],
  };
}

const virtualHost = {
  name: "mergeway.readiness",
  domains: ["*"],
  routes: [
    {
      match: {
        path: "/readyz",
        runtime_fraction: { runtime_key: READINESS_KEY, default_value: { numerator: 0 } },
      },
      direct_response: { status: 200, body: { inline_string: "ok\n" } },
    },
    { match: { path: "/readyz" }, direct_response: { status: 503, body: { inline_string: "no\n" } } },
  ],
};
