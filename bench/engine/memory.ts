/**
 * In a process of its own: what a world costs in memory, resources included. Prints one line of
 * JSON.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { makeEngine } from "./engine.ts";
import { SCALES, type Scale, world } from "./world.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const scale = SCALES.find(({ name }) => name === process.argv[2]) as Scale;
const engine = makeEngine();
engine.apply(world(scale));
collect();
const heap = process.memoryUsage().heapUsed;
const { rss } = process.memoryUsage();
let items = 0;
for (const _ of engine.plan()) items++;
const peak = process.resourceUsage().maxRSS * 1024;
process.stdout.write(`${JSON.stringify({ heap, rss, peak, items })}\n`);
