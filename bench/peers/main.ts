/**
 * Mergeway beside Envoy Gateway, on a cluster of the test bed for each: `npm run bench:peers`. One
 * program (bench/peers/driver) does the same to each in turn. docs/benchmarks/README.md says what
 * is measured and how.
 */

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Bed } from "../../tools/cluster/bed.ts";
import { ROOT } from "../../tools/cluster/chart.ts";
import { down, insideEnvironment } from "../../tools/cluster/cluster.ts";
import { auditLogOf } from "../../tools/cluster/components.ts";
import { inside } from "../../tools/cluster/namespace.ts";
import { apiServer, nodeAddress } from "../../tools/cluster/network.ts";
import { pkiOf } from "../../tools/cluster/pki.ts";
import { type Cluster, clusterNamed } from "../../tools/host/places.ts";
import { build } from "../../tools/programs/build.ts";
import type { Contestant } from "./contestants.ts";
import { plots } from "./plots.ts";
import { driverProgram, envoyGateway } from "./programs.ts";
import type { ContestantResult, PeersRun, SizeResult } from "./results.ts";
import { HELP, limitOf, ROUTES, type Settings, settingsOf } from "./settings.ts";
import { barLines, report } from "./table.ts";

const settings = settingsOf(process.argv.slice(2));
if (settings === undefined) process.stdout.write(HELP);
else await main(settings);

async function main(chosen: Settings): Promise<void> {
  await buildAll(chosen);
  const results: ContestantResult[] = [];
  for (const contestant of chosen.contestants) {
    results.push(await measure(contestant, chosen));
    // After each, so that a run that is cut off leaves what it has.
    write({ ...conditions(chosen), contestants: results }, chosen);
  }
  const missed = barLines({ ...conditions(chosen), contestants: results }).filter(({ met }) => !met);
  if (missed.length > 0 || results.some(({ problem }) => problem !== undefined)) process.exitCode = 1;
}

async function buildAll({ contestants }: Settings): Promise<void> {
  await build(["kubernetes", "etcd", "containerd", "coredns", "pause", "crds", "helm", "envoy"]);
  await driverProgram();
  if (contestants.some(({ id }) => id === "envoy-gateway")) await envoyGateway();
}

async function measure(contestant: Contestant, chosen: Settings): Promise<ContestantResult> {
  const { id, title } = contestant;
  console.error(`\n${title}`);
  const sizes: SizeResult[] = [];
  const problem = await withBed(`peers-${id}`, contestant.crds, async (bed) => {
    await contestant.install(bed);
    await drive(bed.cluster, contestant, chosen, (result) => {
      if (sizes.at(-1)?.size === result.size) sizes.pop();
      sizes.push(result);
    });
  });
  if (problem !== undefined) console.error(`${title}: ${problem}`);
  return { id, title, sizes, ...(problem === undefined ? {} : { problem }) };
}

/**
 * A cluster of its own for each contestant, gone afterwards; gives why the work could not be done.
 */
async function withBed(
  name: string,
  crds: readonly string[],
  work: (bed: Bed) => Promise<void>,
): Promise<string | undefined> {
  let bed: Bed | undefined;
  // A run that is told to end takes its cluster along.
  const leave = (): void => void down(clusterNamed(name)).finally(() => process.exit(1));
  process.once("SIGINT", leave).once("SIGTERM", leave);
  try {
    bed = await Bed.up(name, crds);
    await work(bed);
    return undefined;
  } catch (error) {
    if (bed !== undefined) await showPods(bed);
    return error instanceof Error ? error.message : String(error);
  } finally {
    process.off("SIGINT", leave).off("SIGTERM", leave);
    await bed?.down();
  }
}

/** What can still be seen before the cluster goes. */
async function showPods(bed: Bed): Promise<void> {
  const pods = await bed.kubectl(["get", "pods", "-A", "-o", "wide"]);
  const events = await bed.kubectl(["get", "events", "-A", "--field-selector=type=Warning"]);
  console.error([pods.out, ...events.out.split("\n").slice(-20)].join("\n"));
}

/**
 * Runs the driver inside the cluster; it gives a line of JSON for each size, twice: at first
 * without what comes last.
 */
async function drive(
  cluster: Cluster,
  contestant: Contestant,
  chosen: Settings,
  onResult: (result: SizeResult) => void,
): Promise<void> {
  const config = join(cluster.dir, "peers.json");
  writeFileSync(config, JSON.stringify(driverConfig(cluster, contestant, chosen)), { mode: 0o600 });
  const [program, args] = inside(cluster, [await driverProgram(), "peers", config]);
  const env = insideEnvironment(cluster);
  const child = spawn(program, [...args], { env, stdio: ["ignore", "pipe", "inherit"] });
  const limit = setTimeout(() => child.kill("SIGKILL"), longest(chosen) * 1000);
  const ended = new Promise<string | undefined>((done) => {
    child.once("error", (error) => done(error.message));
    child.once("close", (code, signal) =>
      done(code === 0 ? undefined : `the driver ended: ${code ?? signal}`),
    );
  });
  for await (const line of createInterface({ input: child.stdout })) onResult(JSON.parse(line) as SizeResult);
  const problem = await ended;
  clearTimeout(limit);
  rmSync(config, { force: true });
  if (problem !== undefined) throw new Error(problem);
}

/** More than all bounds of the driver together. */
function longest({ sizes, kindSeconds, sampleSeconds, leaderChanges }: Settings): number {
  const each = sizes.map(
    (size) => 3 * limitOf(size) + 6 * (kindSeconds + 2 * sampleSeconds) + 1200 + 400 * leaderChanges,
  );
  return each.reduce((sum, one) => sum + one, 600);
}

function driverConfig(cluster: Cluster, contestant: Contestant, chosen: Settings): object {
  const { authority, tokens } = pkiOf(cluster);
  const { auditUser, class: gatewayClass, controller, parts, controllerPods, dataPlanePods } = contestant;
  const { sizes, restartSizes, samples, handOvers, leaderChanges, kindSeconds, sampleSeconds } = chosen;
  return {
    server: `https://${apiServer.host}:${apiServer.port}`,
    authority,
    token: readFileSync(tokens, "utf8").split(",")[0],
    auditLog: auditLogOf(cluster),
    auditUser,
    class: gatewayClass,
    controller,
    parts,
    processes: { "API server": pidOf(cluster, "kube-apiserver"), etcd: pidOf(cluster, "etcd") },
    controllerPods,
    dataPlanePods,
    sizes,
    limits: sizes.map(limitOf),
    restartSizes,
    samples,
    handOvers,
    leaderChanges,
    kindSeconds,
    sampleSeconds,
    startSeconds: 180,
    routes: ROUTES,
    backendAddress: nodeAddress,
  };
}

/** As the cluster's own processes number each other. */
function pidOf(cluster: Cluster, component: string): number {
  const record = readFileSync(join(cluster.dir, "components", `${component}.json`), "utf8");
  return (JSON.parse(record) as { readonly pid: number }).pid;
}

function conditions({ sizes, short }: Settings): Omit<PeersRun, "contestants"> {
  const git = ["rev-parse", "--short", "HEAD"];
  return {
    date: new Date().toISOString().slice(0, 10),
    short,
    commit: execFileSync("git", git, { cwd: ROOT, encoding: "utf8" }).trim(),
    machine: `${cpus().length} × ${cpus()[0]?.model.trim() ?? "CPU"}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    routesPerSet: ROUTES,
    sizes,
  };
}

function write(run: PeersRun, { output, name }: Settings): void {
  const folder = resolve(ROOT, output);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(run, undefined, 2)}\n`);
  const drawn = plots(run);
  for (const { file, svg } of drawn) writeFileSync(join(folder, `${name}-${file}.svg`), svg);
  const text = report(
    run,
    drawn.map(({ file, title }) => ({ file: `${name}-${file}.svg`, title })),
  );
  writeFileSync(join(folder, `${name}.md`), text);
  process.stdout.write(`${text}\n`);
}
