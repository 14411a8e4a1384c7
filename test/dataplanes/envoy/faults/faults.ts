/**
 * Each fault happens under load and between changes; afterwards what is served must be what the
 * plan says.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { EnvoyDataPlane } from "../../../../src/dataplanes/envoy/envoy-data-plane.ts";
import type { Bed } from "./bed.ts";

export interface Fault {
  readonly name: string;
  readonly envoys: number;
  /**
   * How long it is, in the small form that runs with all tests and in the one that makes the table.
   */
  readonly rounds: { readonly small: number; readonly full: number };
  /** Returns what should be served in the end, by tenant; and what is worth telling. */
  readonly happen: (bed: Bed, rounds: number) => Promise<Ending>;
}

export interface Ending {
  readonly controller: EnvoyDataPlane;
  /** By tenant: its backend, or 404. */
  readonly expected: ReadonlyMap<string, string>;
  readonly note: string;
}

export const FAULTS: readonly Fault[] = [
  { name: "an Envoy of two is killed", envoys: 2, rounds: { small: 1, full: 5 }, happen: killed },
  { name: "the stream is cut at every message", envoys: 1, rounds: { small: 6, full: 40 }, happen: cutOff },
  {
    name: "the controller restarts in the middle of a push",
    envoys: 1,
    rounds: { small: 2, full: 10 },
    happen: restarted,
  },
  { name: "two controllers, in turn", envoys: 2, rounds: { small: 3, full: 15 }, happen: twoControllers },
  { name: "clocks a day apart", envoys: 1, rounds: { small: 2, full: 6 }, happen: clockSkew },
  {
    name: "an Envoy that stops and starts, at the end of a slow line",
    envoys: 1,
    rounds: { small: 5, full: 30 },
    happen: slowEnvoy,
  },
  { name: "a burst of changes", envoys: 1, rounds: { small: 1_000, full: 10_000 }, happen: burst },
];

async function first(bed: Bed): Promise<EnvoyDataPlane> {
  const { plane, path } = await bed.controller();
  bed.junction.lead(path);
  await bed.settled(plane);
  return plane;
}

/** Somebody comes, somebody moves, somebody goes; the tenant under load moves as well. */
function edit(bed: Bed, round: number, expected: Map<string, string>): void {
  const gone = `t${round - 2}`;
  const to = bed.backendAt(round);
  bed.apply({
    upserts: [...bed.tenant(`t${round}`, to), ...bed.routes("steady", to)],
    removes: expected.get(gone) === undefined ? [] : bed.removal(gone),
  });
  expected.set(`t${round}`, to);
  expected.set("steady", to);
  if (expected.has(gone)) expected.set(gone, "404");
}

async function killed(bed: Bed, rounds: number): Promise<Ending> {
  const controller = await first(bed);
  const expected = new Map<string, string>();
  for (let round = 0; round < rounds; round++) {
    const envoy = bed.envoys[round % 2];
    const pid = envoy?.pid;
    if (pid === undefined) throw new Error("the Envoy does not run");
    process.kill(pid, "SIGKILL");
    edit(bed, round, expected);
    while (controller.replicas.length === 2) await sleep(5);
    await bed.settled(controller);
  }
  return { controller, expected, note: `${rounds} times` };
}

async function cutOff(bed: Bed, rounds: number): Promise<Ending> {
  const controller = await first(bed);
  const expected = new Map<string, string>();
  let cuts = 0;
  for (let round = 0; round < rounds; round++) {
    edit(bed, round, expected);
    // After the first message of the change, the second, and so on, until all of it fits before the
    // cut.
    for (let wanted = 1; ; wanted++) {
      const sent = (): number => controller.replicas.reduce((sum, { stream }) => sum + stream.sent, 0);
      const before = sent();
      while (!controller.settled && sent() - before < wanted)
        await new Promise((resolve) => setImmediate(resolve));
      if (controller.settled && controller.replicas.length > 0) break;
      bed.junction.cut();
      cuts++;
      while (controller.replicas.length > 0) await sleep(1);
      while (controller.replicas.length === 0) await sleep(1);
    }
  }
  if (cuts < rounds) throw new Error("not every change was cut off");
  return { controller, expected, note: `${cuts} cuts in ${rounds} changes` };
}

async function restarted(bed: Bed, rounds: number): Promise<Ending> {
  let controller = await first(bed);
  const expected = new Map<string, string>();
  for (let round = 0; round < rounds; round++) {
    for (let each = 0; each < 20; each++) edit(bed, round * 20 + each, expected);
    await sleep(round);
    await bed.dismiss(controller);
    controller = await first(bed);
  }
  return { controller, expected, note: `${rounds} times, with 20 changes under way` };
}

async function twoControllers(bed: Bed, rounds: number): Promise<Ending> {
  await first(bed);
  const pair = [await bed.controller(), await bed.controller()] as const;
  const expected = new Map<string, string>();
  let sent = 0;
  for (let round = 0; round < rounds; round++) {
    const { plane, path } = pair[round % 2 === 0 ? 0 : 1];
    edit(bed, round, expected);
    bed.junction.lead(path);
    await bed.settled(plane);
    // Both say the same: who changes over is told only what is new.
    sent = Math.max(sent, ...plane.replicas.map(({ stream }) => stream.sent));
  }
  const [last] = [pair[(rounds - 1) % 2 === 0 ? 0 : 1]];
  return {
    controller: last.plane,
    expected,
    note: `at most ${sent} resources sent to one that changes over`,
  };
}

async function clockSkew(bed: Bed, rounds: number): Promise<Ending> {
  const DAY = 86_400_000;
  const { now } = Date;
  const expected = new Map<string, string>();
  let controller = await first(bed);
  try {
    for (let round = 0; round < rounds; round++) {
      const skew = round % 2 === 0 ? DAY : -2 * DAY;
      Date.now = () => now.call(Date) + skew;
      // Certificates that are made now begin, to everybody else, today or days ago.
      edit(bed, round, expected);
      await bed.settled(controller);
      await bed.dismiss(controller);
      controller = await first(bed);
    }
  } finally {
    Date.now = now;
  }
  return { controller, expected, note: "controllers a day ahead and two behind, in turn" };
}

async function slowEnvoy(bed: Bed, rounds: number): Promise<Ending> {
  const controller = await first(bed);
  const expected = new Map<string, string>();
  bed.junction.slow(50_000);
  const pid = bed.envoys[0]?.pid;
  if (pid === undefined) throw new Error("the Envoy does not run");
  for (let round = 0; round < rounds; round++) {
    process.kill(pid, "SIGSTOP");
    for (let each = 0; each < 10; each++) edit(bed, round * 10 + each, expected);
    await sleep(100);
    process.kill(pid, "SIGCONT");
    await sleep(50);
  }
  return { controller, expected, note: `${rounds * 10} changes` };
}

async function burst(bed: Bed, rounds: number): Promise<Ending> {
  const controller = await first(bed);
  const expected = new Map<string, string>();
  const before = controller.replicas[0]?.stream.sent ?? 0;
  const tenants = 25;
  for (let at = 0; at < tenants; at++) {
    bed.apply({ upserts: bed.tenant(`t${at}`, "b0"), removes: [] });
  }
  for (let round = 0; round < rounds; round++) {
    const to = bed.backendAt(round * 7);
    const name = round % 4 === 0 ? "steady" : `t${(round * 3) % tenants}`;
    bed.apply({ upserts: bed.routes(name, to), removes: [] });
    expected.set(name, to);
    if (round % 200 === 0) await sleep(1);
  }
  await bed.settled(controller);
  const sent = (controller.replicas[0]?.stream.sent ?? 0) - before;
  return {
    controller,
    expected,
    note: `${rounds.toLocaleString("en")} changes, ${sent.toLocaleString("en")} resources sent`,
  };
}
