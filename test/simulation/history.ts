/**
 * One history: a small cluster, edits and faults at random times, then peace, and the question
 * whether all is true.
 */
import { Cluster } from "./cluster.ts";
import { EDITS } from "./edits.ts";
import { FAULTS, MOST_SPELL_MS, STUMBLES } from "./faults.ts";
import { untruths } from "./truth.ts";
import { World, within } from "./world.ts";

export interface Outcome {
  readonly seed: number;
  /** What is wrong; undefined when nothing is. */
  readonly failure: string | undefined;
  readonly story: readonly string[];
  readonly events: number;
}

/** Grown-up backoffs, a silent watch, leases and graces end within this time. */
const PATIENCE_MS = 600_000;
const LOOK_MS = 1_000;
/** How long nothing may be written after all is true: longer than a new leader's grace. */
const QUIET_MS = 20_000;
/** Nothing may be untrue for longer where nothing fails. */
const MOST_UNTRUE_MS = 2_000;
const CALM_LOOK_MS = 500;
/** A new leader does not unsay for 15 s what it may only not know yet. */
const CALM_FROM_MS = 16_000;
const CALM_UNTIL_MS = 45_000;

export function runHistory(seed: number): Promise<Outcome> {
  return within(new World(seed), async (world) => {
    const { random } = world;
    const cluster = new Cluster(world, {
      controllers: random.pick([1, 2, 2, 2, 3]),
      pods: random.pick([1, 1, 2]),
      isUneven: true,
    });
    return outcome(seed, world, await attempt(cluster, () => throughFaults(cluster)));
  });
}

/** Edits alone, to a cluster that has come to rest: nothing may be untrue for long. */
export function runCalmHistory(seed: number): Promise<Outcome> {
  return within(new World(seed), async (world) => {
    const cluster = new Cluster(world, { controllers: 2, pods: 2, isUneven: false });
    return outcome(seed, world, await attempt(cluster, () => inCalm(cluster)));
  });
}

/**
 * The same with a data plane that takes nothing for a while, or cannot open a port: what sets say
 * of themselves may not be untrue for long either.
 */
export function runStuckHistory(seed: number): Promise<Outcome> {
  return within(new World(seed), async (world) => {
    const cluster = new Cluster(world, { controllers: 2, pods: 1, isUneven: false });
    const { random } = world;
    for (let count = random.integer(1, 3); count > 0; count--)
      world.outside(CALM_FROM_MS + random.between(0, 10_000), () => random.pick(STUMBLES)(cluster));
    const isOfSet = (untruth: string): boolean => untruth.startsWith("ListenerSet/");
    return outcome(seed, world, await attempt(cluster, () => inCalm(cluster, isOfSet)));
  });
}

/** A failed history as somebody reads it. */
export function told({ seed, story, failure }: Outcome): string {
  return `History ${seed} (SIMULATION_FIRST=${seed} SIMULATIONS=1 tells it again):\n${story.join("\n")}\n\n${failure}`;
}

function outcome(seed: number, { story, events }: World, failure: string | undefined): Outcome {
  return { seed, failure, story: [...story], events };
}

async function attempt(
  cluster: Cluster,
  run: () => Promise<string | undefined>,
): Promise<string | undefined> {
  try {
    return await run();
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    cluster.discard();
  }
}

async function throughFaults(cluster: Cluster): Promise<string | undefined> {
  const { world } = cluster;
  const { random } = world;
  const end = random.between(3_000, 30_000);
  const faults = random.chance(0.2) ? 0 : random.integer(1, 6);
  // Half of the histories begin with a cluster that has come to rest.
  const from = random.chance(0.5) ? Math.min(5_000, end / 2) : 0;
  for (let count = random.integer(2, 8); count > 0; count--)
    world.outside(random.between(from, end), () => random.pick(EDITS)(cluster));
  for (let count = faults; count > 0; count--)
    world.outside(random.between(from, end), () => random.pick(FAULTS)(cluster));
  // Whatever goes wrong shortly before is over by then.
  await world.runUntil(end + MOST_SPELL_MS);
  cluster.heal();
  const healed = world.now;
  for (let wrong = untruths(cluster); wrong.length > 0 || !cluster.isAtRest; wrong = untruths(cluster)) {
    if (world.now - healed > PATIENCE_MS)
      return `not true after ${PATIENCE_MS / 1000} s in which nothing failed:\n${wrong.join("\n")}`;
    await world.runUntil(world.now + LOOK_MS);
  }
  world.tell("world", "all is true");
  return peace(cluster);
}

/** Nothing has to be done any more, so nothing may be. */
async function peace({ world, server }: Cluster): Promise<string | undefined> {
  const before = server.statusWrites.length;
  await world.runUntil(world.now + QUIET_MS);
  const late = server.statusWrites.slice(before);
  if (late.length > 0) return `written although all was true: ${listed(late)}`;
  const needless = server.statusWrites.filter((write) => write.isNeedless);
  return needless.length > 0 ? `written without need: ${listed(needless)}` : undefined;
}

function listed(writes: Cluster["server"]["statusWrites"]): string {
  return writes.map(({ object, by, at }) => `${object} by ${by} at ${Math.round(at)} ms`).join(", ");
}

async function inCalm(
  cluster: Cluster,
  counts: (untruth: string) => boolean = () => true,
): Promise<string | undefined> {
  const { world } = cluster;
  const { random } = world;
  for (let count = random.integer(4, 12); count > 0; count--)
    world.outside(CALM_FROM_MS + random.between(0, 10_000), () => random.pick(EDITS)(cluster));
  await world.runUntil(CALM_FROM_MS);
  const since = new Map<string, number>();
  while (world.now < CALM_UNTIL_MS) {
    const wrong = new Set(untruths(cluster).filter(counts));
    for (const each of since.keys()) if (!wrong.has(each)) since.delete(each);
    for (const each of wrong) since.set(each, since.get(each) ?? world.now);
    const lasting = [...since].filter(([, at]) => world.now - at > MOST_UNTRUE_MS);
    if (lasting.length > 0)
      return `untrue for more than ${MOST_UNTRUE_MS} ms:\n${lasting.map(([each]) => each).join("\n")}`;
    await world.runUntil(world.now + CALM_LOOK_MS);
  }
  return peace(cluster);
}
