/** docs/reference/metrics.md, made from the tables of metrics; a test fails when it is stale. */
import { CONTROLLER_METRICS } from "../../controller/metric-table.ts";
import { TRAFFIC_METRICS } from "../../dataplanes/traffic/metric-table.ts";
import { OMITTED_OBJECTS, STATE_METRICS } from "../../status/metrics/state-metric-table.ts";
import { markdownTable } from "../../view/markdown-table.ts";
import { wrapProse } from "../../view/wrap-prose.ts";
import { METRICS, type MetricSpec } from "./metric-table.ts";

export function metricsPage(): string {
  return `${[
    "# Metrics",
    "",
    "<!-- Made from src/admin, src/controller, src/dataplanes and src/status. Refresh with: npm run docs -->",
    "",
    "## Traffic",
    "",
    ...wrapProse(`At \`/metrics\` of the admin server of \`mergeway run\`, and at \`/metrics\` of port
      19901 of every data plane pod, where that is turned on (\`dataPlane.metrics\` of the chart), with the same names and labels whichever data plane serves. The
      usual metrics of a Node process (\`process_*\`, \`nodejs_*\`) come beside these. The port of a
      pod has no authentication, and names all tenants of its Gateway: it is off unless
      asked for, and a NetworkPolicy should limit who can reach it. A pod also has \`mergeway_certificate_not_after_seconds\` and
      \`mergeway_build_info\`, as below.`),
    "",
    ...wrapProse(`Labels are bounded by what is configured, never by what clients send. \`kind\`,
      \`namespace\` and \`name\` are the owner of the listener, \`listener_name\` is the listener;
      \`kind\` is \`None\` for requests that no listener is for. At most 10,000
      listeners, 200 routes of each and 10,000 ports of Services are counted apart; what is beyond is
      counted together, with \`Overflow\` as \`kind\`, \`route\` or \`service_name\`. A
      route without requests for ten minutes gives way to another one. Series of listeners and
      Services that have left the plan are dropped.`),
    "",
    ...metricTable(TRAFFIC_METRICS),
    "",
    "## mergeway run",
    "",
    "At `/metrics` of the admin server.",
    "",
    ...metricTable(METRICS),
    "",
    "## mergeway controller",
    "",
    ...wrapProse(`At \`/metrics\` of port 9090 (\`--metrics-address\`) of each replica. They name
      Gateways and their pods, and tenants only in \`mergeway_tenant_quota_used\` and
      \`mergeway_tenant_quota_limit\`. The port has no authentication: the chart's
      \`networkPolicy\` limits who can reach it. The usual metrics of a Node process come beside
      these.`),
    "",
    ...wrapProse(`The quotas name the namespaces of tenants where data plane pods have metrics,
      which name them as well (\`dataPlane.metrics\` or \`podMonitor.enabled\` of the chart). At
      most 1,000 namespaces are told apart, those near a limit first; the others are summed up, with
      \`Overflow\` as \`tenant_namespace\`. Elsewhere \`Overflow\` is the sum of all. A namespace is
      counted from its first listener or route at the Gateway on.`),
    "",
    ...metricTable(CONTROLLER_METRICS),
    "",
    "## State of objects",
    "",
    ...wrapProse(`At \`/metrics/state\` of the controller's port 9090 where that is turned on
      (\`--state-metrics\`, \`stateMetrics.enabled\` of the chart), and of the admin server of
      \`mergeway run\`. Names and labels are those of Kuadrant's gateway-api-state-metrics for
      kube-state-metrics, so that its dashboards and alerts can be used; ListenerSets follow the
      same rules. Values are those of the statuses that Mergeway writes, computed when somebody
      asks.`),
    "",
    ...wrapProse(`The path is its own, and off in a cluster unless asked for, because it names every
      tenant and hostname on a port without authentication, because it is large (about 13 series
      for a set of one listener with one route), and because it can be scraped less often. The leader alone answers
      with samples: two copies would be summed up. Scrape it with \`honorLabels\`; the chart's
      ServiceMonitor does. Only objects of this controller are in it, and at most 50,000 of each
      kind, the oldest. Kubernetes labels (\`*_labels\`) are not: tenants would choose the names of labels.
      A condition is 1 for True, and 0 for False or Unknown. Empty labels are left out.
      \`parent_namespace\` is never empty: it is that of the object where the reference has none.`),
    "",
    ...metricTable(stateTable()),
    "",
    ...wrapProse(`GRPCRoute, TLSRoute, TCPRoute and UDPRoute have the metrics of HTTPRoute, with
      \`grpcroute\`, \`tlsroute\`, \`tcproute\` and \`udproute\` in their names; the last two have no
      hostnames. \`customresource_kind\` is \`ListenerSet\` or \`XListenerSet\`.`),
  ].join("\n")}\n`;
}

/** One kind of route stands for all. */
function stateTable(): Readonly<Record<string, MetricSpec>> {
  const shown = STATE_METRICS.filter(
    ({ kinds: [kind = ""] }) => kind === "HTTPRoute" || !kind.endsWith("Route"),
  );
  const { name: omitted, ...spec } = OMITTED_OBJECTS;
  return Object.fromEntries([
    ...shown.flatMap(({ prefix, identity, families }) =>
      families.map(({ suffix, help, labels }) => {
        const metric: MetricSpec = { type: "gauge", help, labels: [...identity, ...labels] };
        return [`${prefix}_${suffix}`, metric] as const;
      }),
    ),
    [omitted, { type: "gauge", ...spec } as MetricSpec] as const,
  ]);
}

function metricTable(metrics: Readonly<Record<string, MetricSpec>>): readonly string[] {
  return markdownTable([
    ["metric", "type", "labels", ""],
    ...Object.entries(metrics).map(([name, { type, help, labels }]) => [
      `\`${name}\``,
      type,
      labels.map((label) => `\`${label}\``).join(", "),
      help,
    ]),
  ]);
}
