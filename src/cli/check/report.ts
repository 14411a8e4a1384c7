/** Findings as text, JSON, SARIF 2.1.0 or annotations of GitHub Actions. */
import { relative } from "node:path";
import { pathToFileURL } from "node:url";
import { linesOf, type Style, type Terminal } from "../foundation/terminal.ts";
import type { HostnameChange } from "./against.ts";
import { CHANGE_RULES, DOCUMENT_RULES, RULES } from "./rule-table.ts";
import type { Finding, Severity } from "./rules/finding.ts";

export interface Report {
  readonly findings: readonly Finding[];
  /** How many files were read; for a cluster, how many objects. */
  readonly files?: number;
  readonly objects?: number;
  /** With --against. */
  readonly hostnames?: readonly HostnameChange[];
}

export type ReportFormat = "text" | "json" | "sarif" | "github";

export function renderReport(
  format: ReportFormat,
  report: Report,
  terminal: Terminal,
  version: string,
): string {
  switch (format) {
    case "json":
      return `${JSON.stringify({ findings: report.findings, ...(report.hostnames && { hostnames: report.hostnames }) }, null, 2)}\n`;
    case "sarif":
      return `${JSON.stringify(sarif(report, version), null, 2)}\n`;
    case "github":
      return report.findings.map((finding) => `${githubLine(finding)}\n`).join("");
    default:
      return text(report, terminal);
  }
}

const STYLES: Readonly<Record<Severity, Style>> = { error: "red", warning: "yellow", info: "cyan" };

function text({ findings, files, objects, hostnames }: Report, { style }: Terminal): string {
  // Changes of hostnames are listed in a section of their own.
  const listed = findings.filter(({ rule }) => !Object.hasOwn(CHANGE_RULES, rule));
  const lines = listed.flatMap(({ file, line, column, severity, rule, owner, path, message, remedy }) => [
    `${style("bold", files === undefined ? file : `${file}:${line}:${column}`)} ${style(STYLES[severity], severity)} ${message} ${style("dim", `[${rule}]`)}`,
    `    ${owner === undefined ? "" : `${owner}${path === undefined ? "" : `, ${path}`}. `}${remedy}`,
  ]);
  const changes = (hostnames ?? []).map(({ change, port, hostname, before, after }) => {
    const sign = { gained: "+", lost: "-", "owner-changed": "~" }[change];
    const owners = [before, after].filter((owner) => owner !== undefined).join(" → ");
    return `${sign} :${port} ${hostname || "(any hostname)"}  ${owners}`;
  });
  const counts = (["error", "warning", "info"] as const).flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? [] : [`${count} ${severity}${count === 1 || severity === "info" ? "" : "s"}`];
  });
  const looked = files === undefined ? amount(objects ?? 0, "object") : amount(files, "file");
  const summary = `${looked}: ${counts.join(", ") || "nothing to report"}`;
  const sections = [
    ...(lines.length === 0 ? [] : [lines]),
    ...(changes.length === 0 ? [] : [[style("bold", "Hostnames"), ...changes]]),
    [summary],
  ];
  return sections.map(linesOf).join("\n");
}

function amount(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/**
 * A workflow command of GitHub Actions. Percent, CR and LF are escaped everywhere, colon and comma
 * in properties.
 */
function githubLine({ severity, file, line, column, rule, owner, message, remedy }: Finding): string {
  const command = severity === "info" ? "notice" : severity;
  const properties = [
    `file=${property(relative(process.cwd(), file))}`,
    `line=${line}`,
    `col=${column}`,
    `title=${property(rule)}`,
  ].join(",");
  return `::${command} ${properties}::${data(`${owner === undefined ? "" : `${owner}: `}${message}. ${remedy}`)}`;
}

function data(value: string): string {
  return value.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(value: string): string {
  return data(value).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

const SARIF_LEVEL: Readonly<Record<Severity, string>> = { error: "error", warning: "warning", info: "note" };

function sarif({ findings }: Report, version: string): unknown {
  const described = new Map<string, string>([
    ...RULES.map(({ id, summary }) => [id, summary] as const),
    ...Object.entries(DOCUMENT_RULES),
    ...Object.entries(CHANGE_RULES).map(([id, { summary }]) => [id, summary] as const),
  ]);
  const used = [...new Set(findings.map(({ rule }) => rule))].sort();
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "mergeway",
            version,
            rules: used.map((id) => ({
              id,
              shortDescription: { text: described.get(id) ?? DOCUMENT_RULES["yaml/…"] },
            })),
          },
        },
        results: findings.map(({ rule, severity, file, line, column, owner, message, remedy }) => ({
          ruleId: rule,
          ruleIndex: used.indexOf(rule),
          level: SARIF_LEVEL[severity],
          message: { text: `${owner === undefined ? "" : `${owner}: `}${message}. ${remedy}` },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: uriOf(file) },
                region: { startLine: line, startColumn: column },
              },
            },
          ],
        })),
      },
    ],
  };
}

/** Relative to the working directory, as code scanning wants it; standard input has no path. */
function uriOf(file: string): string {
  if (file === "-") return "stdin";
  const path = relative(process.cwd(), file);
  return path.startsWith("..") ? pathToFileURL(file).href : path.split("/").map(encodeURIComponent).join("/");
}
