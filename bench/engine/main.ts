/**
 * Measures the engine and writes the table into bench/README.md: `npm run bench:engine`. All sizes
 * run interleaved in one process, so that a slow moment of the machine meets all of them; memory is
 * measured in one process a size.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Engine } from "../../src/engine/engine.ts";
import { makeEngine } from "./engine.ts";
import { EDITS, type Edit, routesOf, SCALES, type Scale, world } from "./world.ts";

const FULL_ROUNDS = 5;
const EDIT_ROUNDS = 400;
const WARM_UP = 50;

interface Memory {
  readonly heap: number;
  readonly rss: number;
  readonly peak: number;
  readonly items: number;
}

interface Crowd {
  readonly listeners: number;
  readonly load: number;
  readonly removal: number;
  readonly peak: number;
}

interface Samples {
  readonly times: number[];
  readonly nodes: number[];
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const full = measureFull();
const edits = measureEdits();
const memory = new Map(SCALES.map((scale) => [scale, inOwnProcess("memory.ts", scale.name) as Memory]));
const crowd = inOwnProcess("crowd.ts") as Crowd;
const text = report();
writeReport(text);
process.stdout.write(`${text}\n`);

function measureFull(): Map<Scale, Samples> {
  const samples = emptySamples();
  for (let round = 0; round < FULL_ROUNDS; round++) {
    for (const scale of SCALES) {
      const resources = [...world(scale)];
      collect();
      const engine = makeEngine();
      const start = threadMilliseconds();
      engine.apply(resources);
      record(samples.get(scale), threadMilliseconds() - start, engine.recomputed);
    }
  }
  return samples;
}

function measureEdits(): Map<Edit, Map<Scale, Samples>> {
  const engines = new Map(SCALES.map((scale) => [scale, loaded(scale)]));
  const samples = new Map(EDITS.map((edit) => [edit, emptySamples()]));
  collect();
  for (let round = -WARM_UP; round < EDIT_ROUNDS; round++) {
    for (const edit of EDITS) {
      for (const [scale, engine] of engines) {
        const n = Math.abs(round * 7) % scale.namespaces;
        const s = Math.abs(round * 3) % scale.setsPerNamespace;
        const changes = edit.apply(n, s);
        const before = engine.recomputed;
        const start = performance.now();
        engine.apply(changes);
        const time = performance.now() - start;
        if (round >= 0) record(samples.get(edit)?.get(scale), time, engine.recomputed - before);
        engine.apply(edit.revert(n, s));
      }
    }
  }
  return samples;
}

function loaded(scale: Scale): Engine {
  const engine = makeEngine();
  engine.apply(world(scale));
  return engine;
}

/**
 * CPU time of this thread, so that other work on the machine does not count; its grain is too
 * coarse for single changes.
 */
function threadMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function emptySamples(): Map<Scale, Samples> {
  return new Map(SCALES.map((scale) => [scale, { times: [], nodes: [] }]));
}

function record(samples: Samples | undefined, time: number, nodes: number): void {
  samples?.times.push(time);
  samples?.nodes.push(nodes);
}

function inOwnProcess(script: string, ...parameters: readonly string[]): unknown {
  const path = new URL(script, import.meta.url).pathname;
  return JSON.parse(execFileSync(process.execPath, [path, ...parameters], { encoding: "utf8" }));
}

function describeCrowd({ listeners, load, removal, peak }: Crowd): string {
  const many = listeners.toLocaleString("en");
  return `A crowd: 64 listeners in each of 10,000 sets (${many}) are computed in ${(load / 1000).toFixed(1)} s with at most ${megabytes(peak)} of resident memory; one set less takes ${milliseconds(removal)}.`;
}

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}

function milliseconds(value: number): string {
  return value >= 100 ? `${Math.round(value)} ms` : `${value.toPrecision(3)} ms`;
}

function megabytes(value: number): string {
  return `${Math.round(value / 1e6)} MB`;
}

function report(): string {
  const rows = [
    row("", (scale) => `${routesOf(scale).toLocaleString("en")} routes`),
    row("sets", (scale) => (scale.namespaces * scale.setsPerNamespace).toLocaleString("en")),
    row("plan items", (scale) => memory.get(scale)?.items.toLocaleString("en")),
    row("full computation, median", (scale) => milliseconds(median(full.get(scale)))),
    row("full computation, nodes", (scale) =>
      quantile(full.get(scale)?.nodes ?? [], 0.5).toLocaleString("en"),
    ),
    ...EDITS.flatMap((edit) => [
      row(`${edit.name}, median / p99`, (scale) => {
        const times = edits.get(edit)?.get(scale)?.times ?? [];
        return `${milliseconds(quantile(times, 0.5))} / ${milliseconds(quantile(times, 0.99))}`;
      }),
      row(`${edit.name}, nodes`, (scale) => String(quantile(edits.get(edit)?.get(scale)?.nodes ?? [], 0.5))),
    ]),
    row("heap after collection", (scale) => megabytes(memory.get(scale)?.heap ?? 0)),
    row("resident memory", (scale) => megabytes(memory.get(scale)?.rss ?? 0)),
    row("resident memory, peak while loading", (scale) => megabytes(memory.get(scale)?.peak ?? 0)),
  ];
  const machine = `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? "CPU"}`;
  return `${table(rows)}\n\n${bars()}\n\n${describeCrowd(crowd)}\n\nMeasured on ${machine}. The full computation is CPU time of the engine's thread, changes are by the clock: ${EDIT_ROUNDS} of each, sizes interleaved.
The Secrets hold copies of two real key pairs; each Secret is read by itself with every check.`;
}

type Row = readonly string[];

function row(name: string, cell: (scale: Scale) => string | undefined): Row {
  return [name, ...SCALES.map((scale) => cell(scale) ?? "")];
}

/**
 * Columns as wide as their widest cell, as the formatter wants Markdown; the first row is the head.
 */
function table(rows: readonly Row[]): string {
  const widths = (rows[0] as Row).map((_, column) =>
    Math.max(...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  const line = (cells: Row): string =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(" | ")} |`;
  const rule = widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(rows[0] as Row), line(rule), ...rows.slice(1).map(line)].join("\n");
}

function median(samples: Samples | undefined): number {
  return quantile(samples?.times ?? [], 0.5);
}

/** The promises: a change costs what it touches, and everything fits. */
function bars(): string {
  const [, tenth, whole] = SCALES as [Scale, Scale, Scale];
  const addition = edits.get(EDITS[0] as Edit);
  const large = median(addition?.get(whole));
  const growth = large / median(addition?.get(tenth));
  const share = median(full.get(whole)) / large;
  const rss = memory.get(whole)?.rss ?? 0;
  return [
    bar(
      growth <= 1.5,
      `a route added at 40,000 routes costs ${growth.toFixed(2)} times what it costs at 4,000 (at most 1.5)`,
    ),
    bar(
      share >= 2000,
      `and 1/${Math.round(share).toLocaleString("en")} of the full computation (at most 1/2,000)`,
    ),
    bar(
      rss <= 600e6,
      `the full world takes ${megabytes(rss)} of resident memory once loaded (at most 600 MB)`,
    ),
  ].join("\n");
}

function bar(met: boolean, what: string): string {
  if (!met) process.exitCode = 1;
  return `- ${met ? "met" : "MISSED"}: ${what}`;
}

function writeReport(measured: string): void {
  const path = new URL("../README.md", import.meta.url);
  const [begin, end] = ["<!-- engine:begin -->", "<!-- engine:end -->"];
  const readme = readFileSync(path, "utf8");
  const before = readme.slice(0, readme.indexOf(begin) + begin.length);
  const after = readme.slice(readme.indexOf(end));
  writeFileSync(path, `${before}\n\n${measured}\n\n${after}`);
}
