/**
 * An hour of load on 200 tenants with three changes a second, on each data plane in turn: `npm run
 * bench:soak`. No request may fail, and memory must not grow.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Changes } from "./changes.ts";
import { classesOf, type Growth, growthOf } from "./heap-classes.ts";
import { Load, type LoadReport } from "./load.ts";
import { isWell, type SoakResult, soakReport } from "./soak-report.ts";
import { type MemorySample, type Plane, Subject } from "./subject.ts";
import { type Place, writeGateway } from "./world.ts";

const HELP = `npm run bench:soak -- [--minutes 60] [--planes embedded,envoy] [--tenants 200] [--heap] [--per-second N] [--output DIR]

  --minutes N      for each data plane
  --per-second N   bounds the requests of all clients together; without it, as many as are answered
  --heap           heap snapshots at a sixth of the time and at the end, and what has grown between them by class
  --output DIR     where soak.json and soak.md go: docs/benchmarks
`;

const CHANGES_PER_SECOND = 3;
const SAMPLES = 60;

interface Settings {
  readonly minutes: number;
  readonly planes: readonly Plane[];
  readonly tenants: number;
  readonly perSecond: number;
  readonly heap: boolean;
  readonly output: string;
}

const settings = readSettings();
if (settings !== undefined) {
  const results: SoakResult[] = [];
  for (const plane of settings.planes) {
    results.push(await soak(plane, settings));
    write(results, settings.output);
  }
  if (!results.every(isWell)) process.exitCode = 1;
}

function readSettings(): Settings | undefined {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      minutes: text,
      planes: text,
      tenants: text,
      output: text,
      "per-second": text,
      heap: { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true) {
    process.stdout.write(HELP);
    return undefined;
  }
  const planes = (values.planes ?? "embedded,envoy").split(",");
  const unknown = planes.find((plane) => plane !== "embedded" && plane !== "envoy");
  if (unknown !== undefined)
    throw new Error(`there is no data plane "${unknown}"; there are embedded and envoy`);
  return {
    minutes: Number(values.minutes ?? 60),
    planes: planes as Plane[],
    tenants: Number(values.tenants ?? 200),
    perSecond: Number(values["per-second"] ?? 0),
    heap: values.heap === true,
    output: values.output ?? fileURLToPath(new URL("../../docs/benchmarks", import.meta.url)),
  };
}

async function soak(plane: Plane, chosen: Settings): Promise<SoakResult> {
  const folder = mkdtempSync(join(tmpdir(), "mergeway-soak-"));
  const place: Place = {
    manifests: join(folder, "manifests"),
    scratch: join(folder, "scratch"),
    port: await freePort(),
    backendPorts: [await freePort(), await freePort()],
  };
  mkdirSync(place.manifests);
  mkdirSync(place.scratch);
  const tenants = Array.from({ length: chosen.tenants }, (_, number) => `tenant-${number}`);
  writeGateway(place);
  const changes = new Changes(place, tenants);
  const load = await Load.start(join(folder, "load.json"), place, tenants, chosen.perSecond);
  const subject = await Subject.start(plane, place.manifests, { TMPDIR: folder });
  try {
    await served(place.port);
    load.go();
    changes.start(CHANGES_PER_SECOND);
    const { memory, growth } = await watchMemory(subject, chosen, load);
    changes.stop();
    const { minutes } = chosen;
    return {
      plane,
      minutes,
      tenants: tenants.length,
      changes: changes.count,
      memory,
      growth,
      ...(await load.stop()),
    };
  } finally {
    changes.stop();
    load.kill();
    await subject.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function watchMemory(
  subject: Subject,
  { minutes, heap }: Settings,
  load: Load,
): Promise<{ readonly memory: readonly MemorySample[]; readonly growth: readonly Growth[] }> {
  const memory: MemorySample[] = [];
  const [step, end] = [(minutes * 60_000) / SAMPLES, performance.now() + minutes * 60_000];
  let early: string | undefined;
  while (performance.now() < end) {
    await sleep(Math.min(step, Math.max(0, end - performance.now())));
    const sample = await subject.memory();
    memory.push(sample);
    tell(sample, load.latest);
    if (heap && early === undefined && memory.length >= SAMPLES / 6) early = await subject.snapshot();
  }
  if (early === undefined) return { memory, growth: [] };
  const before = classesOf(early);
  return { memory, growth: growthOf(before, classesOf(await subject.snapshot())) };
}

function tell(
  { second, heap, external, resident, envoy }: MemorySample,
  { requests, failed }: LoadReport,
): void {
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const other =
    envoy === undefined ? "" : `, Envoy ${mb(envoy.allocated)} allocated, ${mb(envoy.resident)} resident`;
  console.error(
    `${second.toFixed(0).padStart(5)} s  ${requests} requests, ${failed} failed; heap ${mb(heap)}, outside ${mb(external)}, resident ${mb(resident)}${other}`,
  );
}

async function served(port: number): Promise<void> {
  const end = Date.now() + 120_000;
  while (!(await accepts(port))) {
    if (Date.now() > end) throw new Error("nothing is served after two minutes");
    await sleep(200);
  }
  // The port is open before the last certificate has been checked.
  await sleep(3_000);
}

async function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      done(true);
    });
    socket.on("error", () => done(false));
  });
}

function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const server = createServer().once("error", fail);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => done(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function write(results: readonly SoakResult[], folder: string): void {
  mkdirSync(folder, { recursive: true });
  const load = loadavg().map((each) => each.toFixed(1));
  const conditions = `Measured on Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? "CPU"}, clients and backends on the same machine; load average ${load.join(", ")} at the end.`;
  writeFileSync(join(folder, "soak.json"), `${JSON.stringify(results, undefined, 2)}\n`);
  const text = soakReport(results, conditions);
  writeFileSync(join(folder, "soak.md"), text);
  process.stdout.write(`${text}\n`);
}
