// What a soak has shown: every request answered, and memory that does not grow.

import type { Growth } from "./heap-classes.ts";
import type { MemorySample, Plane } from "./subject.ts";

export interface SoakResult {
  readonly plane: Plane;
  readonly minutes: number;
  readonly tenants: number;
  readonly changes: number;
  readonly requests: number;
  readonly failed: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly slowestMs: number;
  readonly memory: readonly MemorySample[];
  readonly growth: readonly Growth[];
}

export interface Trend {
  readonly title: string;
  readonly first: number;
  readonly last: number;
  readonly lowest: number;
  readonly highest: number;
  /** The last third over the middle one: the first is for warming up. */
  readonly ratio: number;
  readonly judged: boolean;
}

/** More than this, from the middle third to the last, is growth. */
const TOLERATED = 1.05;

interface Series {
  readonly title: string;
  readonly judged: boolean;
  readonly of: (sample: MemorySample) => number | undefined;
}

const SERIES: readonly Series[] = [
  {
    title: "Node: heap in use and memory outside of it",
    judged: true,
    of: ({ heap, external }) => heap + external,
  },
  { title: "Node: resident", judged: false, of: ({ resident }) => resident },
  { title: "Node: sockets, timers and the like (count)", judged: false, of: ({ resources }) => resources },
  { title: "Envoy: allocated", judged: true, of: ({ envoy }) => envoy?.allocated },
  { title: "Envoy: resident", judged: false, of: ({ envoy }) => envoy?.resident },
];

export function trendsOf({ memory }: SoakResult): readonly Trend[] {
  return SERIES.flatMap(({ title, judged, of }) => {
    const values = memory.map(of).filter((value): value is number => value !== undefined);
    if (values.length < 3) return [];
    const third = Math.floor(values.length / 3);
    const ratio = mean(values.slice(-third)) / mean(values.slice(-2 * third, -third));
    const [first = 0, last = 0] = [values[0], values.at(-1)];
    return [{ title, first, last, lowest: Math.min(...values), highest: Math.max(...values), ratio, judged }];
  });
}

/** Memory that was not measured is not well: neither Node's nor, where it serves, Envoy's. */
export function isWell(result: SoakResult): boolean {
  const trends = trendsOf(result).filter(({ judged }) => judged);
  return (
    result.failed === 0 &&
    result.requests > 0 &&
    trends.length === (result.plane === "envoy" ? 2 : 1) &&
    trends.every(({ ratio }) => ratio <= TOLERATED)
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function soakReport(results: readonly SoakResult[], conditions: string): string {
  return [
    "# Soak",
    [
      "A load on many tenants over TLS, while three changes a second (routes, certificates, endpoints, tenants that come and go) reach",
      "`mergeway run`. Memory is read after full collections. The last column is the mean of the last third of the samples over that of",
      `the middle third; figures in bold must not be above ${TOLERATED}. \`npm run bench:soak\` measures and writes this page.`,
    ].join("\n"),
    ...results.map(section),
    conditions,
    "",
  ].join("\n\n");
}

function section(result: SoakResult): string {
  const { plane, minutes, tenants, changes, requests, failed, reasons, slowestMs } = result;
  const trends = trendsOf(result);
  const rows = trends.map(({ title, first, last, lowest, highest, ratio, judged }) => {
    const values = [first, lowest, highest, last].map((value) => shown(title, value)).join(" | ");
    return `| ${judged ? `**${title}**` : title} | ${values} | ${judged ? `**${ratio.toFixed(3)}**` : ratio.toFixed(3)} |`;
  });
  const failures = Object.entries(reasons)
    .slice(0, 20)
    .map(([reason, count]) => `- ${reason}: ${count}`);
  return [
    `## ${plane}`,
    `${isWell(result) ? "met" : "MISSED"}: ${requests.toLocaleString("en")} requests to ${tenants} tenants in ${minutes} minutes, ${changes.toLocaleString("en")} changes, ${failed.toLocaleString("en")} failed; the slowest request took ${slowestMs.toFixed(0)} ms.`,
    ...(failures.length === 0 ? [] : [failures.join("\n")]),
    [
      "| | first | lowest | highest | last | last third : middle third |",
      "|---|---:|---:|---:|---:|---:|",
      ...rows,
    ].join("\n"),
    ...(result.growth.length === 0 ? [] : [growthTable(result.growth)]),
  ].join("\n\n");
}

function growthTable(growth: readonly Growth[]): string {
  const rows = growth.map(
    ({ name, count, bytes }) =>
      `| \`${name.replaceAll("|", "\\|")}\` | ${count} | ${(bytes / 1024).toFixed(0)} |`,
  );
  return [
    "| grown from the first heap snapshot to the last | objects | KiB |",
    "|---|---:|---:|",
    ...rows,
  ].join("\n");
}

function shown(title: string, value: number): string {
  return title.includes("(count)") ? String(value) : `${(value / 1e6).toFixed(1)} MB`;
}
