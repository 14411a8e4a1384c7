import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { median } from "../median.ts";
import type { LayoutName } from "./layouts.ts";
import { ROUTES } from "./world.ts";

export const SIZES = [100, 500, 2_500] as const;
export type Size = (typeof SIZES)[number];

export const EDITS = [
  "one tenant added",
  "one route changed",
  "one certificate renewed",
  "one tenant removed",
] as const;
export type Edit = (typeof EDITS)[number];

const LAYOUTS: readonly LayoutName[] = ["Mergeway", "chain per hostname"];

export interface Results {
  readonly rounds: number;
  /** Milliseconds, by `edit / layout / size`. */
  readonly times: Map<string, number[]>;
  readonly cpu: Map<string, number[]>;
  readonly memory: Map<LayoutName, Map<Size, number>>;
  readonly load: Map<LayoutName, Map<Size, number>>;
  readonly lost: Map<LayoutName, Map<Size, number>>;
}

export function report(results: Results): string {
  const head = [
    "",
    ...LAYOUTS.flatMap((layout) => SIZES.map((size) => `${layout}, ${size.toLocaleString("en")}`)),
  ];
  const row = (title: string, cell: (layout: LayoutName, size: Size) => string): string =>
    `| ${[title, ...LAYOUTS.flatMap((layout) => SIZES.map((size) => cell(layout, size)))].join(" | ")} |`;
  const rows = [
    ...EDITS.map((edit) => row(edit, (layout, size) => spread(samples(results.times, edit, layout, size)))),
    ...EDITS.map((edit) =>
      row(`Envoy's CPU: ${edit}`, (layout, size) =>
        milliseconds(median(samples(results.cpu, edit, layout, size))),
      ),
    ),
    row("Envoy's memory", (layout, size) => megabytes(results.memory.get(layout)?.get(size) ?? 0)),
    row("all served after a start", (layout, size) => milliseconds(results.load.get(layout)?.get(size) ?? 0)),
    row("connections lost", (layout, size) => String(results.lost.get(layout)?.get(size) ?? "")),
  ];
  return [
    `| ${head.join(" | ")} |\n|---|${"---:|".repeat(head.length - 1)}\n${rows.join("\n")}`,
    bars(results),
    conditions(results),
  ].join("\n\n");
}

function bars({ times, cpu, memory, lost }: Results): string {
  const added = (layout: LayoutName, size: Size): number => median(samples(times, EDITS[0], layout, size));
  const cost = (layout: LayoutName): number => median(samples(cpu, EDITS[0], layout, 2_500));
  const time = added("Mergeway", 2_500);
  const share = added("chain per hostname", 2_500) / time;
  const cpuShare = cost("chain per hostname") / cost("Mergeway");
  const growth = time / added("Mergeway", 100);
  const rss = memory.get("Mergeway")?.get(2_500) ?? Number.POSITIVE_INFINITY;
  const lostAll = [...(lost.get("Mergeway")?.values() ?? [])].reduce((sum, each) => sum + each, 0);
  return [
    bar(time <= 20, `adding a tenant to 2,500 takes ${milliseconds(time)} (at most 20 ms)`),
    bar(share >= 30, `that is 1/${share.toFixed(0)} of a chain per hostname (at most 1/30)`),
    bar(cpuShare >= 50, `with 1/${cpuShare.toFixed(0)} of its Envoy's CPU time (at most 1/50)`),
    bar(growth <= 1.5, `and ${growth.toFixed(2)} times what it takes among 100 (at most 1.5)`),
    bar(rss <= 350e6, `Envoy has ${megabytes(rss)} with 2,500 tenants (at most 350 MB)`),
    bar(lostAll === 0, `${lostAll} connections of other tenants were lost (0)`),
  ].join("\n");
}

function bar(met: boolean, what: string): string {
  if (!met) process.exitCode = 1;
  return `- ${met ? "met" : "MISSED"}: ${what}`;
}

function conditions({ rounds }: Results): string {
  return `Medians of ${rounds} rounds with the lowest and highest in brackets, ${ROUTES} routes a tenant, on ${machine()}`;
}

export function machine(): string {
  const load = loadavg().map((each) => each.toFixed(1));
  const processors = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "CPU"}`;
  return `Node ${process.versions.node}, ${processors}; load average ${load.join(", ")} at the end.`;
}

function samples(
  of: ReadonlyMap<string, readonly number[]>,
  edit: Edit,
  layout: LayoutName,
  size: Size,
): readonly number[] {
  return of.get(`${edit} / ${layout} / ${size}`) ?? [];
}

function spread(values: readonly number[]): string {
  return `${milliseconds(median(values))} [${milliseconds(Math.min(...values))}–${milliseconds(Math.max(...values))}]`;
}

export function milliseconds(value: number): string {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(1)} ms`;
}

export function megabytes(value: number): string {
  return `${(value / 1e6).toFixed(0)} MB`;
}

/** Between the marks of that name in bench/README.md. */
export function writeReport(name: string, text: string): void {
  const path = new URL("../README.md", import.meta.url);
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const readme = readFileSync(path, "utf8");
  if (!readme.includes(begin)) throw new Error(`bench/README.md has lost its mark ${begin}`);
  const before = readme.slice(0, readme.indexOf(begin) + begin.length);
  writeFileSync(path, `${before}\n\n${text}\n\n${readme.slice(readme.indexOf(end))}`);
}
