/**
 * What a change of one tenant costs among many, and writes the table into bench/README.md: `npm run
 * bench:tenants`. All sizes and both layouts live at once and take turns, so that a slow moment of
 * the machine meets all of them.
 */

import { X509Certificate } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { makeEngine } from "../engine/engine.ts";
import { askHost, firstRight, Regulars, type Seen } from "./clients.ts";
import { type Layout, type LayoutName, startChains, startMergeway } from "./layouts.ts";
import { DRAIN_SECONDS } from "./own-envoy.ts";
import { cpuMilliseconds, residentBytes } from "./process-cost.ts";
import { EDITS, type Edit, type Results, report, SIZES, type Size, writeReport } from "./report.ts";
import {
  type Change,
  gatewayChange,
  goneTenant,
  hostOf,
  newCertificate,
  pathOf,
  routeChange,
  secretChange,
  tenantChanges,
} from "./world.ts";

let stepCount = 0;
/** When the regulars were last asked. */
let lastAsked = Number.NEGATIVE_INFINITY;
const ASK_MS = 10_000;
const ROUNDS = Number(process.env["ROUNDS"] ?? 10);
const REGULARS = 20;
const SETTLE_MS = 200;
const IDLE_TURNS = 3;
const IDLE_MS = 500;
/** Handshakes under way at once when all names are used for the first time. */
const WIDTH = 8;

interface Side {
  readonly layout: Layout;
  readonly regulars: Regulars;
  /** CPU milliseconds per millisecond when nothing happens. */
  idle: number;
}

interface World {
  readonly size: Size;
  readonly engine: ReturnType<typeof makeEngine>;
  readonly sides: readonly Side[];
}

/** A change, and what tells that it has arrived. */
interface Step {
  readonly edit: Edit;
  readonly changes: readonly Change[];
  readonly ask: (layout: Layout) => Promise<Seen>;
  readonly isRight: (seen: Seen) => boolean;
}

const backend = createServer((_request, response) => response.end("here")).listen(0, "127.0.0.1");
const backendPort = await new Promise<number>((resolve) => {
  backend.once("listening", () => resolve((backend.address() as AddressInfo).port));
});

const results: Results = {
  rounds: ROUNDS,
  times: new Map(),
  cpu: new Map(),
  memory: new Map(),
  load: new Map(),
  lost: new Map(),
};
const worlds: World[] = [];
for (const size of SIZES) worlds.push(await load(size));
for (let turn = 0; turn < IDLE_TURNS; turn++) {
  for (const { sides } of worlds) {
    for (const side of sides) side.idle = Math.min(side.idle, await idleCost(side.layout));
  }
}
for (let round = -1; round < ROUNDS; round++) {
  for (const world of worlds) {
    for (const measured of world.sides) await play(world, measured, round);
  }
}
// Whoever is told to go is gone by then.
await sleep((DRAIN_SECONDS + 1) * 1000);
for (const { size, sides } of worlds) {
  for (const { layout, regulars } of sides) {
    await regulars.ask();
    note(results.lost, layout.name, size, regulars.lost + regulars.failed);
    note(results.memory, layout.name, size, residentBytes(layout.pid));
    regulars.leave();
  }
}
for (const { sides } of worlds) for (const { layout } of sides) await layout.close();
backend.close();
backend.closeAllConnections();
const text = report(results);
writeReport("tenants", text);
process.stdout.write(`${text}\n`);

async function load(size: Size): Promise<World> {
  const engine = makeEngine();
  const changes = [gatewayChange()];
  for (let index = 0; index < size; index++) {
    changes.push(...tenantChanges(tenant(index), newCertificate(tenant(index)), backendPort));
  }
  const { plan } = engine.apply(changes);
  const sides: Side[] = [];
  for (const start of [startMergeway, startChains]) {
    const began = performance.now();
    const layout = await start(plan);
    const last = hostOf(tenant(size - 1));
    const time = await firstRight(began, () => askHost(layout.port, last, pathOf(0)), isServed);
    note(results.load, layout.name, size, time);
    await useAll(layout, size);
    const regulars = new Regulars(
      layout.port,
      Array.from({ length: REGULARS }, (_, index) => hostOf(tenant(Math.floor((index * size) / REGULARS)))),
    );
    sides.push({ layout, regulars, idle: Number.POSITIVE_INFINITY });
    process.stderr.write(`${size} tenants, ${layout.name}: served after ${time.toFixed(0)} ms\n`);
  }
  return { size, engine, sides };
}

async function useAll({ port }: Layout, size: Size): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: WIDTH }, async () => {
      while (next < size) {
        const host = hostOf(tenant(next++));
        const { status } = await askHost(port, host, pathOf(0));
        if (status !== 200) throw new Error(`${host} is not served: ${status}`);
      }
    }),
  );
}

async function idleCost({ pid }: Layout): Promise<number> {
  const began = performance.now();
  const before = cpuMilliseconds(pid);
  await sleep(IDLE_MS);
  return (cpuMilliseconds(pid) - before) / (performance.now() - began);
}

/**
 * One round of all edits, measured on one side; the other side follows when the measuring is done.
 */
async function play(world: World, measured: Side, round: number): Promise<void> {
  for (const step of steps(world.size, round)) {
    const { layout, idle } = measured;
    const cpu = cpuMilliseconds(layout.pid);
    const began = performance.now();
    const { plan } = world.engine.apply(step.changes);
    layout.apply(plan);
    const time = await firstRight(began, () => step.ask(layout), step.isRight);
    await sleep(SETTLE_MS);
    const used = cpuMilliseconds(layout.pid) - cpu - idle * (performance.now() - began);
    if (round >= 0) {
      sample(results.times, step.edit, { layout: layout.name, size: world.size }).push(time);
      sample(results.cpu, step.edit, { layout: layout.name, size: world.size }).push(Math.max(0, used));
    }
    for (const other of world.sides) {
      if (other === measured) continue;
      other.layout.apply(plan);
      await firstRight(performance.now(), () => step.ask(other.layout), step.isRight);
    }
    await askRegulars();
  }
}

/** Nobody is idle for so long (a minute) that it would be sent away for that. */
async function askRegulars(): Promise<void> {
  if (performance.now() - lastAsked < ASK_MS) return;
  for (const { sides } of worlds) for (const { regulars } of sides) await regulars.ask();
  lastAsked = performance.now();
}

function steps(size: Size, round: number): readonly Step[] {
  const added = `new-${round + 1}`;
  const [first, second] = [newCertificate(added), newCertificate(added)];
  const fingerprint = new X509Certificate(second.cert).fingerprint256;
  const old = tenant(Math.abs(round * 7) % size);
  const changed = `/changed-${round + 1}-${stepCount++}`;
  const asked = (path: string) => (layout: Layout) => askHost(layout.port, hostOf(added), path);
  const actions: Readonly<Record<Edit, Omit<Step, "edit">>> = {
    "one tenant added": {
      changes: tenantChanges(added, first, backendPort),
      ask: asked(pathOf(3)),
      isRight: isServed,
    },
    "one route changed": {
      changes: [routeChange(old, 5, changed)],
      ask: (layout) => askHost(layout.port, hostOf(old), changed),
      isRight: isServed,
    },
    "one certificate renewed": {
      changes: [secretChange(added, second)],
      ask: asked(pathOf(0)),
      isRight: (seen) => seen.status === 200 && seen.fingerprint === fingerprint,
    },
    "one tenant removed": {
      changes: goneTenant(added),
      ask: asked(pathOf(0)),
      isRight: ({ status }) => status === 0,
    },
  };
  return EDITS.map((edit) => ({ edit, ...actions[edit] }));
}

function isServed({ status }: Seen): boolean {
  return status === 200;
}

function tenant(index: number): string {
  return `tenant-${index}`;
}

function note(into: Map<LayoutName, Map<Size, number>>, layout: LayoutName, size: Size, value: number): void {
  const sizes = into.get(layout) ?? new Map();
  into.set(layout, sizes.set(size, value));
}

function sample(
  into: Results["times"],
  edit: Edit,
  { layout, size }: { readonly layout: LayoutName; readonly size: Size },
): number[] {
  const key = `${edit} / ${layout} / ${size}`;
  const samples = into.get(key) ?? [];
  into.set(key, samples);
  return samples;
}
