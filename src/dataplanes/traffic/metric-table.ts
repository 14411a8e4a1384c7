/**
 * The metrics of traffic: the same names and labels in `mergeway run` and in every data plane pod,
 * whichever data plane serves. A listener is named by its owner and its own name; routes, Services
 * and reasons come from the plan and from this program, never from clients.
 */
export interface TrafficMetricSpec {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

const LISTENER = ["kind", "namespace", "name", "listener_name"] as const;

export type TrafficMetricName =
  | "mergeway_requests_total"
  | "mergeway_request_duration_seconds"
  | "mergeway_request_bytes_total"
  | "mergeway_response_bytes_total"
  | "mergeway_retries_total"
  | "mergeway_local_replies_total"
  | "mergeway_upstream_errors_total"
  | "mergeway_tenant_refusals_total"
  | "mergeway_connections_total"
  | "mergeway_open_connections"
  | "mergeway_tls_handshakes_total"
  | "mergeway_uncounted_requests_total"
  | "mergeway_telemetry_records_total";

export const TRAFFIC_METRICS: Readonly<Record<TrafficMetricName, TrafficMetricSpec>> = {
  mergeway_requests_total: {
    type: "counter",
    help: "HTTP requests by listener, route (`Kind/namespace/name`; empty when no rule matched) and class of the status; the code is 000 when the client left before there was one",
    labels: [...LISTENER, "route", "code"],
  },
  mergeway_request_duration_seconds: {
    type: "histogram",
    help: "Time from the head of a request to the last byte of its response",
    labels: LISTENER,
  },
  mergeway_request_bytes_total: {
    type: "counter",
    help: "Bytes of request bodies",
    labels: LISTENER,
  },
  mergeway_response_bytes_total: {
    type: "counter",
    help: "Bytes of response bodies",
    labels: LISTENER,
  },
  mergeway_retries_total: {
    type: "counter",
    help: "Times that a backend was asked again for the same request",
    labels: LISTENER,
  },
  mergeway_local_replies_total: {
    type: "counter",
    help: "Requests that the data plane answered or cut off itself, by reason: of a policy (AddressDenied, RateLimited, PolicyUnavailable), of routing (NoListener, NoRoute, Misdirected), of a limit, of the request itself, or of a backend",
    labels: [...LISTENER, "reason"],
  },
  mergeway_upstream_errors_total: {
    type: "counter",
    help: "Requests that failed because of their backend, by Service port and reason",
    labels: ["service_namespace", "service_name", "service_port", "reason"],
  },
  mergeway_tenant_refusals_total: {
    type: "counter",
    help: "What was refused because a tenant (the object that carries the listener) had as much as it may have: connections, requests, bufferedBytes, or (backend, Envoy alone) requests to one backend",
    labels: ["kind", "namespace", "name", "limit"],
  },
  mergeway_connections_total: {
    type: "counter",
    help: "TCP connections of clients that were accepted",
    labels: [],
  },
  mergeway_open_connections: {
    type: "gauge",
    help: "TCP connections of clients that are open",
    labels: [],
  },
  mergeway_tls_handshakes_total: {
    type: "counter",
    help: "TLS handshakes by result: completed, unknown_name (no listener, or no certificate, has the server name), client_certificate (none, or not a valid one), or failed for another reason",
    labels: ["result"],
  },
  mergeway_uncounted_requests_total: {
    type: "counter",
    help: "Requests that were served and are in no other metric, because the log that Envoy counts in was full (the agent was away); always 0 with the embedded data plane",
    labels: [],
  },
  mergeway_telemetry_records_total: {
    type: "counter",
    help: "Records of requests by signal (access_log: lines, otlp_log: log records, span: spans) and result: sent, or lost because whoever reads them is slow, away or refuses",
    labels: ["signal", "result"],
  },
};
