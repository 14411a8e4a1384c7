/**
 * Random histories of verdicts, edits, faults and leaders: when faults end, the last state is
 * written. HISTORIES=10000 for the long run.
 */
import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Key } from "../../../src/api/key.ts";
import type { ObjectVerdict } from "../../../src/engine/verdicts/verdicts.ts";
import { writeUrgencyOf } from "../../../src/status/kubernetes/gathering.ts";
import {
  GATEWAY,
  gatewayVerdict,
  Scene,
  type SetFacts,
  setVerdict,
  summary,
  summaryOf,
} from "./status-scene.ts";
import type { Fault } from "./status-server.ts";

const RUNS = Number(process.env["HISTORIES"] ?? 300);
/** The least time between two writes, and the way to the server. */
const WAY_MS = 250;
const TIMEOUT = 60_000 + RUNS * 500;
const KEYS: readonly Key[] = ["ListenerSet/team-a/one", "ListenerSet/team-b/two", GATEWAY];

interface Facts extends SetFacts {
  readonly programmed: boolean;
}

/** Verdicts on what the watch has shown, as an engine gives them. */
class Judge {
  readonly #scene: Scene;
  readonly #facts = new Map<Key, Facts>();
  readonly #generations = new Map<Key, number>();
  readonly #since = new Map<Key, number>();

  constructor(scene: Scene) {
    this.#scene = scene;
    scene.server.watchers.add((changes) => {
      for (const { key, resource } of changes) {
        this.#change(key, () => {
          if (resource === undefined) this.#generations.delete(key);
          else this.#generations.set(key, resource.metadata.generation ?? 0);
        });
      }
    });
  }

  learn(key: Key, facts: Facts): void {
    this.#change(key, () => this.#facts.set(key, facts));
  }

  /** For how long the verdict has been what it is. */
  stableFor(key: Key): number {
    return this.#scene.clock.now() - (this.#since.get(key) ?? this.#scene.clock.now());
  }

  #change(key: Key, change: () => void): void {
    const before = this.verdict(key);
    change();
    const after = this.verdict(key);
    if (isDeepStrictEqual(before, after)) return;
    this.#since.set(key, this.#scene.clock.now());
    this.#scene.judge(key, after);
  }

  verdict(key: Key): ObjectVerdict | undefined {
    const generation = this.#generations.get(key);
    if (generation === undefined) return undefined;
    const { programmed, ...facts } = this.#facts.get(key) ?? { programmed: false };
    return key === GATEWAY
      ? gatewayVerdict(facts.routes ?? 0, { programmed, generation, words: facts.words ?? "" })
      : setVerdict(programmed, { ...facts, generation });
  }
}

interface World {
  readonly scene: Scene;
  readonly judge: Judge;
}

/** One thing that happens, and how it is told when a history fails. */
interface Step {
  readonly told: string;
  readonly act: (world: World) => void;
  readonly thenMs: number;
}

const key = fc.constantFrom(...KEYS);
const thenMs = fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 50, max: 3_000 }));

const facts: fc.Arbitrary<Facts> = fc.record({
  programmed: fc.boolean(),
  routes: fc.integer({ min: 0, max: 5 }),
  conflicted: fc.constantFrom(false, false, false, true),
  words: fc.constantFrom("one", "other"),
});

function step<T>(
  name: string,
  values: fc.Arbitrary<T>,
  act: (world: World, value: T) => void,
): fc.Arbitrary<Step> {
  return fc.tuple(values, thenMs).map(([value, ms]) => ({
    told: `${name} ${JSON.stringify(value)}, ${ms} ms`,
    act: (world) => act(world, value),
    thenMs: ms,
  }));
}

const learn = step("learn", fc.tuple(key, facts), ({ judge }, [at, news]) => judge.learn(at, news));
const edit = step("edit", key, ({ scene }, at) => scene.server.edit(at));

const calm: fc.Arbitrary<Step> = fc.oneof({ weight: 8, arbitrary: learn }, { weight: 1, arbitrary: edit });

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constantFrom(404, 409, 422, 429, 500).map((refused) => ({ refused })),
  fc.constant<Fault>({ lost: true }),
);

const rough: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: learn },
  { weight: 2, arbitrary: edit },
  step("overwrite", key, ({ scene }, at) => scene.server.overwrite(at, { conditions: [], listeners: [] })),
  step("remove", key, ({ scene }, at) => {
    if (scene.server.get(at) !== undefined) scene.server.remove(at);
  }),
  step("create", key, ({ scene }, at) => {
    if (scene.server.get(at) === undefined) scene.server.create(at);
  }),
  step("recreate", key, ({ scene }, at) => {
    if (scene.server.get(at) !== undefined) scene.server.remove(at);
    scene.server.create(at);
  }),
  step("faults", fc.array(fc.option(fault, { nil: undefined }), { maxLength: 8 }), ({ scene }, list) => {
    const left = [...list];
    scene.server.fault = () => left.shift();
  }),
  step(
    "delays",
    fc.record({
      latencyMs: fc.constantFrom(1, 20, 400),
      answerMs: fc.constantFrom(1, 20, 1_500),
      watchMs: fc.constantFrom(1, 20, 2_500),
    }),
    ({ scene }, delays) => Object.assign(scene.server, delays),
  ),
  step("leads", fc.tuple(fc.boolean(), fc.boolean()), ({ scene }, leads) => {
    for (const [i, replica] of scene.replicas.entries()) {
      if (leads[i]) replica.lead();
      else void replica.resign();
    }
  }),
);

/** Plays a history; what fast-check shrinks to is told step by step. */
async function play(steps: readonly Step[], world: World, check: () => void): Promise<void> {
  const { scene } = world;
  try {
    for (const at of KEYS) await scene.create(at);
    for (const { act, thenMs: ms } of steps) {
      act(world);
      await scene.clock.advance(ms);
    }
    await end(scene);
    check();
  } catch (error) {
    const story = steps.map(({ told }) => told).join("\n");
    throw new Error(`${error instanceof Error ? error.message : error}\n${story}`, { cause: error });
  } finally {
    await scene.end();
  }
}

/**
 * Faults end, one replica leads, and time passes: longer than any wait after failures or rewrites.
 */
async function end(scene: Scene): Promise<void> {
  Object.assign(scene.server, { latencyMs: 2, answerMs: 2, watchMs: 3, fault: () => undefined });
  void scene.replicas[1]?.resign();
  await scene.clock.advance(3_000);
  scene.first.lead();
  await scene.clock.advance(700_000);
}

function expectTruth({ scene, judge }: World): void {
  for (const at of scene.server.keys()) {
    const verdict = judge.verdict(at);
    if (verdict === undefined) throw new Error(`${at} is there and not judged`);
    expect(`${at} ${summary(scene.server.statusOf(at))}`).toBe(`${at} ${summaryOf(verdict)}`);
  }
}

function needless({ scene }: World): readonly unknown[] {
  return scene.server.writes.filter(({ fields, before }) =>
    Object.entries(fields).every(([field, value]) => isDeepStrictEqual(before[field], value)),
  );
}

describe("statuses", () => {
  test(
    "are true when faults have ended, and nothing that is already said is written",
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(rough, { minLength: 1, maxLength: 40, size: "max" }), async (steps) => {
          const scene = new Scene({ replicas: 2, timing: { graceMs: 5_000 } });
          const world = { scene, judge: new Judge(scene) };
          await play(steps, world, () => {
            expectTruth(world);
            expect(needless(world)).toEqual([]);
          });
        }),
        { numRuns: RUNS },
      );
    },
    TIMEOUT,
  );

  test(
    "of a calm cluster are never late, and counts alone are at most one write a second",
    async () => {
      let gathered = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(calm, { minLength: 1, maxLength: 60, size: "max" }), async (steps) => {
          const scene = new Scene();
          const world = { scene, judge: new Judge(scene) };
          const late: string[] = [];
          const timed = steps.map((one) => ({
            ...one,
            act: (): void => {
              one.act(world);
              watchForLateness(world, late);
            },
          }));
          await play(timed, world, () => {
            expectTruth(world);
            expect(late).toEqual([]);
            for (const at of KEYS) gathered += expectSpacing(world, at);
          });
        }),
        { numRuns: RUNS },
      );
      expect(gathered, "writes of counts alone").toBeGreaterThan(RUNS);
    },
    TIMEOUT,
  );
});

/**
 * What stays true is written within a second, and at once if it is final; a little is needed for
 * the way.
 */
function watchForLateness({ scene, judge }: World, late: string[]): void {
  const look = (withinMs: number, concerns: (text: string) => string | undefined): void => {
    for (const at of KEYS) {
      const verdict = judge.verdict(at);
      if (verdict === undefined || judge.stableFor(at) < withinMs) continue;
      const truth = concerns(summaryOf(verdict));
      const said = concerns(summary(scene.server.statusOf(at)));
      if (truth !== undefined && said !== truth)
        late.push(`${at} after ${withinMs} ms: ${said}, not ${truth}`);
    }
  };
  scene.clock.after(WAY_MS, () => look(WAY_MS, withoutCounts));
  scene.clock.after(1_000 + WAY_MS, () => look(1_000 + WAY_MS, (text) => text));
}

/** The conditions alone; none where they are not final. */
function withoutCounts(text: string): string | undefined {
  return text.includes("Programmed=False/Pending") ? undefined : text.replace(/\d+ \[|\| \d+$/g, "");
}

/** Returns how many writes were of counts alone. */
function expectSpacing({ scene }: World, at: Key): number {
  let last = Number.NEGATIVE_INFINITY;
  let counts = 0;
  for (const { at: time, before, fields } of scene.server.writesOf(at)) {
    if (writeUrgencyOf(before, fields) === "counts") {
      expect(time - last, `${at} at ${time}`).toBeGreaterThanOrEqual(1_000);
      counts++;
    }
    last = time;
  }
  return counts;
}
