/**
 * What a flood of one tenant costs another, on both data planes: `npm run bench:fairness` writes
 * the table into bench/README.md.
 *
 * Rounds of calm and of flood take turns, so that a slow moment of the machine meets both.
 * BENCH_ROUNDS makes it shorter; then nothing is written. `-- --enforce` exits with 1 when the bar
 * is missed: no error of the quiet tenant, and a p99 within twice its calm one.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { cpus, loadavg } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import { wrapProse } from "../../src/view/wrap-prose.ts";
import { createEnvoy } from "../../test/dataplanes/support/envoy-plane.ts";
import { type CreateDataPlane, PlaneUnderTest } from "../../test/dataplanes/support/plane-under-test.ts";
import { median } from "../median.ts";
import type { BackendPorts } from "./backends.ts";
import { LIMITS, planOf, QUIET } from "./world.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);
const ROUND_MS = 5_000;
/** The flood reaches its limits before it is measured beside. */
const RISE_MS = 2_000;
/** The quiet tenant's requests at a time, each on a kept connection, and the pause behind each. */
const QUIET_CLIENTS = 4;
const QUIET_PAUSE_MS = 5;
const PORT = 80;
/** The p99 beside a flood, as a multiple of the calm one. */
const MOST_RATIO = 2;

interface Round {
  readonly requests: number;
  readonly errors: number;
  readonly p50: number;
  readonly p99: number;
}

interface Result {
  readonly name: string;
  readonly calm: readonly Round[];
  readonly flooded: readonly Round[];
  /** Answers to the noisy tenant by status, of all rounds. */
  readonly refused: number;
  readonly poured: number;
}

const planes: readonly (readonly [string, CreateDataPlane])[] = [
  ["embedded", (options) => createEmbeddedDataPlane({ bind: options.bind, workers: 1 })],
  ["Envoy", ({ bind }) => createEnvoy({ bind })],
];

const backends = fork(new URL("backends.ts", import.meta.url));
try {
  const [ports] = (await once(backends, "message")) as [BackendPorts];
  const results: Result[] = [];
  for (const [name, create] of planes) results.push(await measurePlane(name, create, ports));
  const text = report(results);
  if (process.env["BENCH_ROUNDS"] === undefined) write(text);
  process.stdout.write(`${text}\n`);
  const missed = results.filter((result) => !isReached(result)).map(({ name }) => name);
  process.stdout.write(missed.length === 0 ? "bar reached\n" : `bar missed: ${missed.join(", ")}\n`);
  if (missed.length > 0 && process.argv.includes("--enforce")) process.exitCode = 1;
} finally {
  backends.disconnect();
}

async function measurePlane(name: string, create: CreateDataPlane, ports: BackendPorts): Promise<Result> {
  const plane = await PlaneUnderTest.start(create, planOf(PORT, ports), {});
  const at = plane.at(PORT);
  const calm: Round[] = [];
  const flooded: Round[] = [];
  let refused = 0;
  let poured = 0;
  try {
    await measureRound(at);
    for (let round = 0; round < ROUNDS; round++) {
      calm.push(await measureRound(at));
      const flood = fork(new URL("flood-process.ts", import.meta.url), [String(at)]);
      await once(flood, "message");
      await wait(RISE_MS);
      flooded.push(await measureRound(at));
      const told = once(flood, "message");
      flood.send("stop");
      const [{ answers, bytesSent }] = (await told) as [Told];
      refused += new Map(answers).get("503") ?? 0;
      poured += bytesSent;
      await once(flood, "exit");
      await wait(500);
    }
  } finally {
    await plane.close();
  }
  return { name, calm, flooded, refused, poured };
}

interface Told {
  readonly answers: readonly (readonly [string, number])[];
  readonly bytesSent: number;
}

async function measureRound(port: number): Promise<Round> {
  const agent = new Agent({ keepAlive: true, maxSockets: QUIET_CLIENTS });
  const times: number[] = [];
  let errors = 0;
  const until = performance.now() + ROUND_MS;
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      const began = performance.now();
      if (await isServed(port, agent)) times.push(performance.now() - began);
      else errors++;
      await wait(QUIET_PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: QUIET_CLIENTS }, client));
  agent.destroy();
  times.sort((a, b) => a - b);
  const part = (share: number): number => times[Math.floor((times.length - 1) * share)] ?? Number.NaN;
  return { requests: times.length + errors, errors, p50: part(0.5), p99: part(0.99) };
}

async function isServed(port: number, agent: Agent): Promise<boolean> {
  try {
    const sent = request({ host: "127.0.0.1", port, agent, headers: { host: QUIET } }).end();
    const [response] = await once(sent, "response");
    response.resume();
    await once(response, "end");
    return response.statusCode === 200;
  } catch {
    return false;
  }
}

function sum(rounds: readonly Round[], of: "requests" | "errors"): number {
  return rounds.reduce((total, round) => total + round[of], 0);
}

function medianOf(rounds: readonly Round[], which: "p50" | "p99"): number {
  return median(rounds.map((round) => round[which]));
}

function ratioOf({ calm, flooded }: Result): number {
  return medianOf(flooded, "p99") / medianOf(calm, "p99");
}

function isReached(result: Result): boolean {
  return sum(result.flooded, "errors") === 0 && ratioOf(result) <= MOST_RATIO;
}

function report(results: readonly Result[]): string {
  const rows = results.map((result) => {
    const { name, calm, flooded, refused, poured } = result;
    const times = [
      medianOf(calm, "p50"),
      medianOf(flooded, "p50"),
      medianOf(calm, "p99"),
      medianOf(flooded, "p99"),
    ].map((time) => `${time.toFixed(2)} ms`);
    const cells = [
      name,
      `${sum(flooded, "errors")} of ${sum(flooded, "requests")}`,
      ...times,
      ratioOf(result).toFixed(2),
      isReached(result) ? "reached" : "**missed**",
      refused,
      `${(poured / 2 ** 20).toFixed(0)} MiB`,
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const [model = "an unknown processor"] = cpus().map((cpu) => cpu.model);
  const load = loadavg().map((average) => average.toFixed(1));
  return [
    "| data plane | errors of the quiet tenant | p50, calm | p50, flood | p99, calm | p99, flood | ratio | bar | 503 to the noisy one | bodies poured |",
    "|---|---:|---:|---:|---:|---:|---:|---|---:|---:|",
    ...rows,
    "",
    ...wrapProse(
      `Medians of ${ROUNDS} rounds of ${ROUND_MS / 1000} s each, limits ${LIMITS.connections} connections, ${LIMITS.requests} requests, ${LIMITS.backendConnections} connections to a backend, ${(LIMITS.bufferedBytes / 2 ** 20).toFixed(0)} MiB of waiting bodies, on Node ${process.versions.node}, ${cpus().length} × ${model}; load average ${load.join(", ")} at the end.`,
    ),
  ].join("\n");
}

function write(text: string): void {
  const path = new URL("../README.md", import.meta.url);
  const [begin, end] = ["<!-- fairness:begin -->", "<!-- fairness:end -->"];
  const readme = readFileSync(path, "utf8");
  if (!readme.includes(begin)) throw new Error(`bench/README.md has lost its mark ${begin}`);
  const before = readme.slice(0, readme.indexOf(begin) + begin.length);
  writeFileSync(path, `${before}\n\n${text}\n\n${readme.slice(readme.indexOf(end))}`);
}
