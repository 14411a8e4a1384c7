/** docs/reference/metrics.md, made from the tables of metrics; a test fails when it is stale. */
import { CONTROLLER_METRICS } from "../../controller/metric-table.ts";
import { markdownTable } from "../../view/markdown-table.ts";
import { wrapProse } from "../../view/wrap-prose.ts";
import { METRICS, type MetricSpec } from "./metric-table.ts";

export function metricsPage(): string {
  return `${[
    "# Metrics",
    "",
    "<!-- Made from src/admin and src/controller. Refresh with: npm run docs -->",
    "",
    "## mergeway run",
    "",
    ...wrapProse(`At \`/metrics\` of the admin server. Labels are bounded by what is configured,
      never by what clients send. The usual metrics of a Node process (\`process_*\`, \`nodejs_*\`)
      come beside these.`),
    "",
    ...metricTable(METRICS),
    "",
    "## mergeway controller",
    "",
    ...wrapProse(`At \`/metrics\` of port 9090 (\`--metrics-address\`) of each replica. They name
      Gateways and their pods, and no tenant. The port has no authentication: the chart's
      \`networkPolicy\` limits who can reach it. The usual metrics of a Node process come beside
      these.`),
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
