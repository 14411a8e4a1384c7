/**
 * What counting costs Envoy and the agent: CPU time per request with and without the log that
 * requests are counted in, and memory, with 2,500 tenants. `npm run bench:traffic`. CPU time is
 * counted by the kernel, so a busy machine makes it longer and not wrong.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { createEnvoyDataPlane, type EnvoyDataPlane } from "../../src/dataplanes/envoy/envoy-data-plane.ts";
import { TrafficCounts } from "../../src/dataplanes/traffic/traffic-counts.ts";
import type { PlanItem } from "../../src/plan/plan.ts";
import { envoyBinary } from "../../test/dataplanes/support/envoy-binary.ts";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import {
  backend,
  forwardTo,
  gateway,
  host,
  listener,
  port,
  rule,
} from "../../test/dataplanes/support/plan-builder.ts";
import { median } from "../median.ts";
import { cpuMilliseconds, residentBytes } from "../tenants/process-cost.ts";
import type { Order } from "./load-process.ts";

const TENANTS = 2_500;
const REQUESTS = 40_000;
const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 7);

const backendPort = await lastingPort();
const load = fork(new URL("./load-process.ts", import.meta.url), [String(backendPort)], {
  execArgv: [],
});
await once(load, "message");
const counts = new TrafficCounts();
const planes = [
  { name: "without", ...(await start(undefined)), micros: [] as number[] },
  { name: "without, again", ...(await start(undefined)), micros: [] as number[] },
  { name: "with", ...(await start(counts)), micros: [] as number[] },
];
for (const { at } of planes) await ask(at, 10_000);
const agent = { with: [] as number[], without: [] as number[] };
for (let round = 0; round < ROUNDS; round++) {
  for (const { at, plane, micros, name } of planes) {
    const pid = plane.process(gateway)?.pid ?? 0;
    const before = cpuMilliseconds(pid);
    const own = process.cpuUsage();
    await ask(at, REQUESTS);
    // The log is written and read after the answers.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    micros.push(((cpuMilliseconds(pid) - before) * 1_000) / REQUESTS);
    const { user, system } = process.cpuUsage(own);
    agent[name === "with" ? "with" : "without"].push((user + system) / REQUESTS);
  }
}
for (const { name, micros, plane } of planes) {
  const memory = residentBytes(plane.process(gateway)?.pid ?? 0) / 1e6;
  console.log(`${name}: ${median(micros).toFixed(2)} µs of Envoy's CPU a request, ${memory.toFixed(1)} MB`);
}
const [reading, idle] = [median(agent.with), median(agent.without)];
console.log(`agent: ${(reading - idle).toFixed(2)} µs a request more than without`);
const counted = counts.byListener().reduce((sum, { requests }) => sum + requests, 0);
console.log(`${counted} requests of ${ROUNDS * REQUESTS + 10_000} counted, ${counts.uncounted} known as not`);
for (const { plane } of planes) await plane.close({ graceMs: 0 });
load.disconnect();

async function start(traffic: TrafficCounts | undefined): Promise<{ plane: EnvoyDataPlane; at: number }> {
  const at = await lastingPort();
  const plane = createEnvoyDataPlane({
    bind: { address: "127.0.0.1", portMap: () => at },
    supervise: { binary: envoyBinary(), concurrency: 1 },
    ...(traffic === undefined ? {} : { traffic }),
  });
  plane.apply({ upserts: items(), removes: [] });
  await plane.served();
  return { plane, at };
}

function items(): readonly PlanItem[] {
  const http = port(80);
  const all: PlanItem[] = [http, backend("b", [backendPort])];
  for (let tenant = 0; tenant < TENANTS; tenant++) {
    const name = `t${tenant}.example.com`;
    const owner = { kind: "ListenerSet", namespace: `team-${tenant}`, name: "own" } as const;
    const id = `listener:${gateway}:ListenerSet/team-${tenant}/own#http`;
    const one = listener(id, http, name, { owner, section: "http" });
    all.push(one, host(one, name, [rule({ path: "/app", action: forwardTo("b") })]));
  }
  return all;
}

async function ask(at: number, requests: number): Promise<void> {
  const order: Order = { port: at, requests, tenants: TENANTS };
  load.send(order);
  await once(load, "message");
}
