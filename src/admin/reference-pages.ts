/** docs/reference/admin-api.md and docs/reference/metrics.md; a test fails when they are stale. */
import { CONTROLLER_METRICS } from "../controller/metric-table.ts";
import { markdownTable } from "../view/markdown-table.ts";
import type { Endpoint } from "./endpoint.ts";
import { METRICS, type MetricSpec } from "./metric-table.ts";

const REFRESH = "<!-- Made from src/admin. Refresh with: npm run docs -->";

export function adminApiPage(endpoints: readonly Endpoint[]): string {
  return `${[
    "# Admin server",
    "",
    REFRESH,
    "",
    "`mergeway run` opens it on 127.0.0.1:9909 (`--admin-address`). It only reads (GET, HEAD), has no secrets to tell, and answers only where the `Host` is an IP",
    "address or `localhost`, so that no web page can reach it by a name of its own. It names every tenant and both sides of every conflict: keep it to",
    "the Gateway's owner. `/` lists what there is; errors are `{error}`.",
    ...endpoints.flatMap(({ path, summary, parameters, answer }) => [
      "",
      `## GET ${path}`,
      "",
      summary,
      "",
      `Answer: ${answer}`,
      ...(parameters === undefined
        ? []
        : [
            "",
            ...markdownTable([
              ["parameter", ""],
              ...Object.entries(parameters).map(([name, help]) => [`\`${name}\``, help]),
            ]),
          ]),
    ]),
  ].join("\n")}\n`;
}

export function metricsPage(): string {
  return `${[
    "# Metrics",
    "",
    "<!-- Made from src/admin and src/controller. Refresh with: npm run docs -->",
    "",
    "## mergeway run",
    "",
    "At `/metrics` of the admin server. Labels are bounded by what is configured, never by what clients send. The usual metrics of a Node process",
    "(`process_*`, `nodejs_*`) come beside these.",
    "",
    ...metricTable(METRICS),
    "",
    "## mergeway controller",
    "",
    "At `/metrics` of port 9090 (`--metrics-address`), of each replica. They name Gateways and their pods, and nothing of the tenants behind them. The port asks nobody who",
    "they are: the chart's `networkPolicy` says who may reach it. The usual metrics of a Node process come beside these.",
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
