/**
 * What a scrape of the state costs, in the world of bench/engine with 2,500 sets and with 16 routes
 * or one for each of them: `npm run bench:state-metrics`. Whoever scrapes is another process. The
 * longest turn is the longest time in which nothing else could run.
 */
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import type { Key } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { DEFAULT_CONTROLLER } from "../../src/engine/foundation/settings.ts";
import { StateExposition } from "../../src/status/metrics/state-exposition.ts";
import { makeEngine } from "../engine/engine.ts";
import { type Change, SCALES, world } from "../engine/world.ts";

const ROUNDS = 5;
const run = promisify(execFile);

/** `curl` tells the bytes that it was sent, and how long that took. */
async function scrape(url: string, zipped: boolean): Promise<{ bytes: number; seconds: number }> {
  const flags = zipped ? ["--compressed"] : [];
  const format = "%{size_download} %{time_total}";
  const { stdout } = await run("curl", ["-s", ...flags, "-o", "/dev/null", "-w", format, url]);
  const [bytes = 0, seconds = 0] = stdout.split(" ").map(Number);
  return { bytes, seconds };
}

async function measure(title: string, changes: readonly Change[]): Promise<void> {
  const engine = makeEngine();
  engine.apply(changes);
  const resources = new Map<Key, Resource>();
  for (const { key, resource } of changes) if (resource !== undefined) resources.set(key, resource);
  const verdicts = (): ReturnType<typeof engine.verdicts> => engine.verdicts();
  const exposition = new StateExposition({ controllerName: DEFAULT_CONTROLLER, resources, verdicts });
  const server = createServer((request, response) => void exposition.answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const series = (await (await fetch(url)).text()).split("\n").filter((line) => /^\w/.test(line)).length;
  for (const zipped of [true, false]) {
    const turns: number[] = [];
    const processor: number[] = [];
    const seconds: number[] = [];
    let bytes = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await setTimeout(200);
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      const before = process.threadCpuUsage();
      const told = await scrape(url, zipped);
      const used = process.threadCpuUsage(before);
      delay.disable();
      bytes = told.bytes;
      seconds.push(told.seconds);
      processor.push((used.user + used.system) / 1000);
      turns.push(delay.max / 1e6);
    }
    const median = (values: number[]): number => values.sort((a, b) => a - b)[ROUNDS >> 1] ?? 0;
    const line = [
      `${title}, ${zipped ? "gzip" : "plain"}: ${series} series, ${(bytes / 1e6).toFixed(1)} MB,`,
      `${median(seconds).toFixed(2)} s, ${median(processor).toFixed(0)} ms of the thread,`,
      `longest turn ${median(turns).toFixed(1)} ms (worst ${Math.max(...turns).toFixed(1)} ms)`,
    ];
    process.stdout.write(`${line.join(" ")}\n`);
  }
  server.close();
  server.closeAllConnections();
}

const full = SCALES.find(({ name }) => name === "full") ?? { name: "", namespaces: 50, setsPerNamespace: 50 };
const all = [...world(full)];
const isFirstRoute = ({ key }: Change): boolean => !key.startsWith("HTTPRoute/") || /-0$/.test(key);
await measure("one route a set", all.filter(isFirstRoute));
await measure("16 routes a set", all);
