/**
 * Every metric of the controller, declared once. Labels are kinds, methods, reasons, Gateways and
 * their pods: never hostnames or anything that a tenant with sets and routes could multiply, since
 * whoever reaches the port can read them. The quotas alone name tenants, where that is asked for.
 */
interface ControllerMetricSpec {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

export type ControllerMetricName =
  | "mergeway_kubernetes_request_seconds"
  | "mergeway_kubernetes_lists_total"
  | "mergeway_kubernetes_watch_ends_total"
  | "mergeway_kubernetes_watch_events_total"
  | "mergeway_engine_step_seconds"
  | "mergeway_propagation_seconds"
  | "mergeway_data_plane_replicas"
  | "mergeway_data_plane_unsent_items"
  | "mergeway_data_plane_unacknowledged_seconds"
  | "mergeway_data_plane_lagging_replicas"
  | "mergeway_stream_refusals_total"
  | "mergeway_status_backlog"
  | "mergeway_status_writes_total"
  | "mergeway_status_fights_total"
  | "mergeway_events_dropped_total"
  | "mergeway_tenant_policy_violations"
  | "mergeway_tenant_quota_used"
  | "mergeway_tenant_quota_limit"
  | "mergeway_hostname_claims"
  | "mergeway_infrastructure_failures_total"
  | "mergeway_listeners"
  | "mergeway_leader";

export const CONTROLLER_METRICS: Readonly<Record<ControllerMetricName, ControllerMetricSpec>> = {
  mergeway_kubernetes_request_seconds: {
    type: "histogram",
    help: "Time until the API server answered, by method and status (0: no answer)",
    labels: ["method", "status"],
  },
  mergeway_kubernetes_lists_total: {
    type: "counter",
    help: "Whole lists read, by resource; again is true for every list after the first",
    labels: ["resource", "again"],
  },
  mergeway_kubernetes_watch_ends_total: {
    type: "counter",
    help: "Watches that ended and were resumed, by resource",
    labels: ["resource"],
  },
  mergeway_kubernetes_watch_events_total: {
    type: "counter",
    help: "Watch events received, by resource",
    labels: ["resource"],
  },
  mergeway_engine_step_seconds: {
    type: "histogram",
    help: "Time that the engine took for one step",
    labels: [],
  },
  mergeway_propagation_seconds: {
    type: "histogram",
    help: "Time from a watch event until its effect on the plan was sent to all connected data plane pods (stage sent), was acknowledged by all of them (acknowledged), and until its effect on a condition was written (status; on the leader)",
    labels: ["stage"],
  },
  mergeway_data_plane_replicas: {
    type: "gauge",
    help: "Data plane pods connected to this replica of the controller, by Gateway",
    labels: ["gateway"],
  },
  mergeway_data_plane_unsent_items: {
    type: "gauge",
    help: "Changed items that a data plane pod could not be sent yet because it does not read; of pods that take their items from this replica",
    labels: ["gateway", "pod"],
  },
  mergeway_data_plane_unacknowledged_seconds: {
    type: "gauge",
    help: "For how long a data plane pod has owed the acknowledgement of its newest items; 0 when it owes none; of pods that take their items from this replica",
    labels: ["gateway", "pod"],
  },
  mergeway_data_plane_lagging_replicas: {
    type: "gauge",
    help: "Data plane pods that have not served the newest plan for 10 seconds, whoever they take it from, by Gateway; the Gateway's Programmed condition names them",
    labels: ["gateway"],
  },
  mergeway_stream_refusals_total: {
    type: "counter",
    help: "Connections to the plan stream that were refused, by reason: token (none shown), hello (nonsense, or too late), identity (not a pod of that Gateway), elsewhere (its pod is connected from another address), crowd (too many unauthenticated peers)",
    labels: ["reason"],
  },
  mergeway_status_backlog: {
    type: "gauge",
    help: "Objects whose status is waiting to be looked at",
    labels: [],
  },
  mergeway_status_writes_total: {
    type: "counter",
    help: "Statuses written, by kind and result",
    labels: ["kind", "result"],
  },
  mergeway_status_fights_total: {
    type: "counter",
    help: "Statuses that had to be written again, unchanged, because somebody else had changed them, by kind",
    labels: ["kind"],
  },
  mergeway_events_dropped_total: {
    type: "counter",
    help: "Events that were not sent because there were too many",
    labels: [],
  },
  mergeway_tenant_policy_violations: {
    type: "gauge",
    help: "Listeners and routes that are against the TenantPolicy of a Gateway: refused, or with enforcement Audit only counted",
    labels: ["gateway", "kind"],
  },
  mergeway_tenant_quota_used: {
    type: "gauge",
    help: "How much a namespace has of what the TenantPolicy of a Gateway limits, by resource: listeners, hostnames, wildcards, ports, certificates, routes or rules; more than the limit is refused",
    labels: ["gateway", "tenant_namespace", "resource"],
  },
  mergeway_tenant_quota_limit: {
    type: "gauge",
    help: "How much of it the namespace may have",
    labels: ["gateway", "tenant_namespace", "resource"],
  },
  mergeway_hostname_claims: {
    type: "gauge",
    help: "Hostnames in use at a Gateway whose TenantPolicy holds claims: held, or unheld because there is no room for them; on the leader",
    labels: ["gateway", "state"],
  },
  mergeway_infrastructure_failures_total: {
    type: "counter",
    help: "Times that the infrastructure of a Gateway could not be made as it should be; it is tried again",
    labels: [],
  },
  mergeway_listeners: {
    type: "gauge",
    help: "Listeners by Gateway and state: serving (it holds its port and hostname), conflicted (somebody else does), or refused",
    labels: ["gateway", "state"],
  },
  mergeway_leader: {
    type: "gauge",
    help: "1 on the replica that writes statuses and infrastructure",
    labels: [],
  },
};
