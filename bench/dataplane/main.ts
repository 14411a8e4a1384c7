/**
 * Measures the embedded data plane beside Envoy and nginx and writes the table into
 * bench/README.md: `npm run bench:dataplane`.
 *
 * All contestants have the same 40,000 routes loaded and take turns within every round, so that a
 * slow moment of the machine meets all of them. BENCH_ROUNDS and BENCH_ONLY (a protocol) make it
 * shorter; then nothing is written. BENCH_PROFILE names a folder for a CPU profile.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Backends, startBackends } from "./backends.ts";
import { type Contestant, type ContestantName, startContestant } from "./contestants.ts";
import type { Pauses } from "./embedded-process.ts";
import { isInstalled, loadAverage, pause, residentBytes } from "./machine.ts";
import { idleConnectionBytes, measure, pausesOf, type Sample, tell } from "./measure.ts";
import { type Memory, type Results, report, writeReport } from "./report.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { TENANTS, type World, writeCertificates } from "./world.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const ONLY = process.env["BENCH_ONLY"];
const whole = process.env["BENCH_ROUNDS"] === undefined && ONLY === undefined;
const scenarios = SCENARIOS.filter(({ protocol }) => ONLY === undefined || protocol === ONLY);
const CHURN_EVERY_MS = 100;

const absent = ["wrk", "h2load", "taskset"].filter((program) => !isInstalled(program));
if (absent.length > 0) {
  process.stderr.write(
    `${absent.join(", ")} not found: apt-get install -y wrk nghttp2-client util-linux nginx-light\n`,
  );
  process.exit(1);
}
const names: readonly ContestantName[] = [
  "Envoy",
  ...(isInstalled("nginx") ? (["nginx"] as const) : []),
  "Mergeway",
];
const missing = names.includes("nginx")
  ? []
  : ["nginx is not installed (apt-get install -y nginx-light) and was left out."];

const folder = mkdtempSync(join(tmpdir(), "mergeway-bench-"));
const load: number[] = [];
const started: { close(): Promise<void> }[] = [];
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void clean().then(() => process.exit(1)));
}
try {
  await run();
} finally {
  await clean();
}

async function run(): Promise<void> {
  for (const line of missing) say(line);
  say(`making ${TENANTS} certificates`);
  const certificates = join(folder, "certificates");
  writeCertificates(certificates);
  const backends = keep(await startBackends(folder));
  const world: World = {
    tenants: TENANTS,
    certificates,
    backendPort: backends.httpPort,
    grpcPort: backends.grpcPort,
  };
  const { contestants, memory } = await startAll(world);
  const samples = await measureAll(contestants, backends);
  const mergeway = contestants.find(({ name }) => name === "Mergeway") as Contestant;
  const results: Results = {
    contestants: names,
    missing,
    samples,
    memory,
    loadingMs: mergeway.loadingMs ?? 0,
    pauses: whole ? await measurePauses(mergeway, backends) : [],
    load,
  };
  const text = report(results);
  if (whole) writeReport(text);
  process.stdout.write(`${text}\n`);
}

/** Each is first measured with one tenant, then started anew with all of them. */
async function startAll(world: World): Promise<{
  readonly contestants: readonly Contestant[];
  readonly memory: ReadonlyMap<ContestantName, Memory>;
}> {
  const contestants: Contestant[] = [];
  const memory = new Map<ContestantName, Memory>();
  for (const name of names) {
    say(`starting ${name}`);
    const small = whole ? await residentWithOne(name, world) : 0;
    const contestant = keep(await startContestant(name, world, folder));
    contestants.push(contestant);
    if (!whole) continue;
    await pause(2_000);
    const total = residentBytes(contestant.pid);
    memory.set(name, {
      total,
      perThousandTenants: (total - small) / (TENANTS / 1_000),
      perConnection: await idleConnectionBytes(contestant, "http"),
      perSecureConnection: await idleConnectionBytes(contestant, "https"),
    });
  }
  return { contestants, memory };
}

async function residentWithOne(name: ContestantName, world: World): Promise<number> {
  const contestant = await startContestant(name, { ...world, tenants: 1 }, folder);
  await pause(1_000);
  const bytes = residentBytes(contestant.pid);
  await contestant.close();
  return bytes;
}

async function measureAll(
  contestants: readonly Contestant[],
  backends: Backends,
): Promise<ReadonlyMap<Scenario, ReadonlyMap<ContestantName, readonly Sample[]>>> {
  const samples = new Map(
    scenarios.map((scenario) => [
      scenario,
      new Map(contestants.map(({ name }): [ContestantName, Sample[]] => [name, []])),
    ]),
  );
  await warmUp(contestants, backends);
  for (let round = 0; round < ROUNDS; round++) {
    for (const scenario of scenarios) {
      for (const contestant of contestants) {
        load.push(loadAverage());
        const sample = await measure(scenario, contestant, { backends, folder });
        samples.get(scenario)?.get(contestant.name)?.push(sample);
        say(describe(round, scenario, contestant.name, sample));
      }
    }
  }
  return samples;
}

/**
 * A just-in-time compiler has done its work in a process that has served for a while; the others
 * only open their connections.
 */
async function warmUp(contestants: readonly Contestant[], backends: Backends): Promise<void> {
  for (const contestant of contestants) {
    for (let pass = 0; pass < (contestant.name === "Mergeway" ? 3 : 1); pass++) {
      for (const scenario of scenarios.filter(
        ({ connections, size }) => connections === 32 && size === "100 B",
      )) {
        await measure(scenario, contestant, { backends, folder });
      }
    }
  }
}

async function measurePauses(
  mergeway: Contestant,
  backends: Backends,
): Promise<readonly (readonly [string, Pauses])[]> {
  const scenario: Scenario = { protocol: "HTTP/1.1", size: "100 B", connections: 256 };
  const rows: (readonly [string, Pauses])[] = [];
  const during = async (): Promise<void> => tell(mergeway.child, { type: "reset" });
  await measure(scenario, mergeway, { backends, folder, during });
  rows.push(["HTTP/1.1, 256 connections", await pausesOf(mergeway)]);
  tell(mergeway.child, { type: "churn", everyMs: CHURN_EVERY_MS });
  await measure(scenario, mergeway, { backends, folder, during });
  rows.push(["the same, ten tenants a second removed and added", await pausesOf(mergeway)]);
  tell(mergeway.child, { type: "churn", everyMs: 0 });
  return rows;
}

function describe(round: number, scenario: Scenario, name: string, sample: Sample): string {
  const { protocol, size, connections } = scenario;
  const { requestsPerSecond, requestsPerCpuSecond, utilisation, complaint = "" } = sample;
  const numbers = `${requestsPerCpuSecond.toFixed(0)} per CPU second, ${requestsPerSecond.toFixed(0)} per second, core ${(utilisation * 100).toFixed(0)} %`;
  return `round ${round + 1}: ${protocol}, ${size}, ${connections}: ${name}: ${numbers} ${complaint}`;
}

/** Whatever was started ends with the benchmark. */
async function clean(): Promise<void> {
  await Promise.all(started.splice(0).map((each) => each.close()));
  rmSync(folder, { recursive: true, force: true });
}

function keep<T extends { close(): Promise<void> }>(each: T): T {
  started.push(each);
  return each;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
