/**
 * The metrics of `mergeway run`, besides those of traffic (src/dataplanes/traffic) and of the state
 * of Gateway API objects (src/status/metrics).
 */
export interface MetricSpec {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

export const METRICS: Readonly<Record<string, MetricSpec>> = {
  mergeway_listener_state: {
    type: "gauge",
    help: "The state of a listener (serving, waiting, failed, conflicted, refused), always 1",
    labels: ["kind", "namespace", "name", "listener_name", "state"],
  },
  mergeway_certificate_not_after_seconds: {
    type: "gauge",
    help: "When the certificate of a listener ends, in seconds since the epoch",
    labels: ["namespace", "name"],
  },
  mergeway_stray_routes: {
    type: "gauge",
    help: "Routes that no listener has taken",
    labels: [],
  },
  mergeway_changes_total: {
    type: "counter",
    help: "Changes of the merged state by what changed",
    labels: ["type"],
  },
  mergeway_source_errors: {
    type: "gauge",
    help: "Documents that cannot be read now; what was served of them before stays",
    labels: [],
  },
  mergeway_ready: {
    type: "gauge",
    help: "1 once everything that was there at the start is served, or known not to be",
    labels: [],
  },
  mergeway_build_info: {
    type: "gauge",
    help: "The version that runs, always 1",
    labels: ["version"],
  },
};
