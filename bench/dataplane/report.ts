import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { median } from "../median.ts";
import type { ContestantName } from "./contestants.ts";
import type { Pauses } from "./embedded-process.ts";
import type { Sample } from "./measure.ts";
import { BARS, type Scenario } from "./scenarios.ts";

export interface Results {
  readonly contestants: readonly ContestantName[];
  readonly missing: readonly string[];
  /** One sample per round. */
  readonly samples: ReadonlyMap<Scenario, ReadonlyMap<ContestantName, readonly Sample[]>>;
  readonly memory: ReadonlyMap<ContestantName, Memory>;
  readonly loadingMs: number;
  readonly pauses: readonly (readonly [when: string, pauses: Pauses])[];
  readonly load: readonly number[];
}

export interface Memory {
  readonly total: number;
  readonly perThousandTenants: number;
  readonly perConnection: number;
  readonly perSecureConnection: number;
}

export function report(results: Results): string {
  return [
    speedTable(results),
    bars(results),
    memoryTable(results),
    pauseTable(results),
    conditions(results),
  ].join("\n\n");
}

export function writeReport(text: string): void {
  const path = new URL("../README.md", import.meta.url);
  const [begin, end] = ["<!-- dataplane:begin -->", "<!-- dataplane:end -->"];
  const readme = readFileSync(path, "utf8");
  if (!readme.includes(begin)) throw new Error(`bench/README.md has lost its mark ${begin}`);
  const before = readme.slice(0, readme.indexOf(begin) + begin.length);
  writeFileSync(path, `${before}\n\n${text}\n\n${readme.slice(readme.indexOf(end))}`);
}

function speedTable({ contestants, samples }: Results): string {
  const others = contestants.filter((name) => name !== "Envoy");
  const rows = [...samples].map(([{ protocol, size, connections }, byName]) => {
    const cells = others.map((name) => ratioCell(ratios(byName, name)));
    return `| ${protocol} | ${size} | ${connections} | ${cost(byName.get("Envoy"))} | ${cost(byName.get("Mergeway"))} | ${cells.join(" | ")} |`;
  });
  return [
    `| | answer | connections | Envoy, µs CPU per request | Mergeway, µs CPU per request | ${others.map((name) => `${name} : Envoy`).join(" | ")} |`,
    `|---|---:|---:|---:|---:|${others.map(() => "---:").join("|")}|`,
    ...rows,
  ].join("\n");
}

/** Requests per CPU second over Envoy's of the same round. */
function ratios(
  byName: ReadonlyMap<ContestantName, readonly Sample[]>,
  name: ContestantName,
): readonly number[] {
  const envoy = byName.get("Envoy") ?? [];
  return (byName.get(name) ?? []).map(
    (sample, round) => sample.requestsPerCpuSecond / (envoy[round]?.requestsPerCpuSecond ?? Number.NaN),
  );
}

function ratioCell(values: readonly number[]): string {
  return `**${median(values).toFixed(2)}** [${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)}]`;
}

function cost(samples: readonly Sample[] | undefined): string {
  const each = (samples ?? []).map((sample) => 1e6 / sample.requestsPerCpuSecond);
  return each.length === 0 ? "" : median(each).toFixed(0);
}

/** The promise of the first version: at least Envoy's requests per CPU second. */
function bars({ samples }: Results): string {
  const lines = [...samples]
    .filter(([{ protocol }]) => BARS.has(protocol))
    .map(([{ protocol, size, connections }, byName]) => {
      const ratio = median(ratios(byName, "Mergeway"));
      if (ratio < 1) process.exitCode = 1;
      return `- ${ratio >= 1 ? "met" : "MISSED"}: ${protocol}, ${size}, ${connections} connections: ${ratio.toFixed(2)} times Envoy (at least 1.0)`;
    });
  return lines.join("\n");
}

function memoryTable({ contestants, memory }: Results): string {
  const cell = (name: ContestantName, value: (memory: Memory) => string): string => {
    const own = memory.get(name);
    return own === undefined ? "" : value(own);
  };
  const row = (title: string, value: (memory: Memory) => string): string =>
    `| ${title} | ${contestants.map((name) => cell(name, value)).join(" | ")} |`;
  return [
    `| resident memory | ${contestants.join(" | ")} |`,
    `|---|${contestants.map(() => "---:").join("|")}|`,
    row("with the whole table", ({ total }) => `${(total / 1e6).toFixed(0)} MB`),
    row("per 1,000 tenants", ({ perThousandTenants }) => `${(perThousandTenants / 1e6).toFixed(1)} MB`),
    row("per idle HTTP connection", ({ perConnection }) => `${(perConnection / 1024).toFixed(1)} KiB`),
    row("per idle HTTPS connection", (own) => `${(own.perSecureConnection / 1024).toFixed(1)} KiB`),
  ].join("\n");
}

function pauseTable({ pauses, loadingMs }: Results): string {
  return [
    "| Mergeway's event loop, delay of a 1 ms timer | median | p99 | longest |",
    "|---|---:|---:|---:|",
    ...pauses.map(
      ([when, { median: middle, p99, max }]) =>
        `| ${when} | ${middle.toFixed(1)} ms | ${p99.toFixed(1)} ms | ${max.toFixed(0)} ms |`,
    ),
    "",
    `Taking the whole table at once takes ${loadingMs.toFixed(0)} ms.`,
  ].join("\n");
}

function conditions({ samples, load, missing }: Results): string {
  const rounds = [...samples.values()].flatMap((byName) => [...byName.values()]).at(0)?.length ?? 0;
  const complaints = [...samples.values()]
    .flatMap((byName) => [...byName])
    .flatMap(([name, list]) => list.flatMap(({ complaint }) => (complaint ? [`${name}: ${complaint}`] : [])));
  const machine = `Node ${process.versions.node}, ${availableParallelism()} × ${cpus()[0]?.model.trim() ?? "CPU"}`;
  return [
    `Measured on ${machine}; load average ${Math.min(...load).toFixed(1)} to ${Math.max(...load).toFixed(1)} (the benchmark's own processes are about 2 of it). Medians of ${rounds} rounds, lowest and highest in brackets.`,
    ...missing,
    ...(complaints.length === 0
      ? []
      : [`Not all requests were answered well: ${[...new Set(complaints)].join("; ")}.`]),
  ].join("\n");
}
