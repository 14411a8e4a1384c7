/** docs/reference/metrics.md, made from the tables of metrics; a test fails when it is stale. */
import { CONTROLLER_METRICS } from "../../controller/metric-table.ts";
import { TRAFFIC_METRICS } from "../../dataplanes/traffic/metric-table.ts";
import { markdownTable } from "../../view/markdown-table.ts";
import { wrapProse } from "../../view/wrap-prose.ts";
import { METRICS, type MetricSpec } from "./metric-table.ts";

export function metricsPage(): string {
  return `${[
    "# Metrics",
    "",
    "<!-- Made from src/admin, src/controller and src/dataplanes. Refresh with: npm run docs -->",
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
  ].join("\n")}\n`;
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
