/**
 * When statuses are written: conditions at once, counts at most once a second, and the last state
 * always.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Key } from "../../../src/api/key.ts";
import { GATEWAY, gatewayVerdict, Scene, setVerdict, summary, summaryOf } from "./status-scene.ts";

const SET: Key = "ListenerSet/team-a/web";
/** Until news of one object are looked at, and on the way to the server. */
const AT_ONCE = 15;

let scene: Scene;

beforeEach(async () => {
  scene = new Scene();
  await scene.create(SET);
  await scene.create(GATEWAY);
});

afterEach(() => scene.end());

/** The set stands programmed with no routes; returns the moment after that. */
async function programmedSet(): Promise<number> {
  scene.judge(SET, setVerdict(true));
  await scene.clock.advance(5_000);
  scene.server.writes.length = 0;
  return scene.clock.now();
}

describe("a new set", () => {
  test("that the data plane confirms soon is written once, as soon as it is confirmed", async () => {
    const start = scene.clock.now();
    scene.judge(SET, setVerdict(false));
    await scene.clock.advance(40);
    scene.judge(SET, setVerdict(true));
    await scene.clock.advance(10_000);
    expect(scene.timesOf(SET, start)).toEqual([expect.closeTo(40 + 12, 0)]);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(setVerdict(true)));
  });

  test("that nobody confirms says Pending within a second, and Programmed at once when it is", async () => {
    const start = scene.clock.now();
    scene.judge(SET, setVerdict(false));
    await scene.clock.advance(4_000);
    expect(scene.timesOf(SET, start)).toEqual([1_000 + scene.server.latencyMs]);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(setVerdict(false)));
    scene.judge(SET, setVerdict(true));
    await scene.clock.advance(AT_ONCE);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(setVerdict(true)));
  });

  test("that is refused says so at once", async () => {
    scene.judge(SET, setVerdict(false, { conflicted: true }));
    await scene.clock.advance(AT_ONCE);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(setVerdict(false, { conflicted: true })));
  });
});

describe("counts", () => {
  test("of routes that come within a second are one write", async () => {
    const start = await programmedSet();
    for (let routes = 1; routes <= 16; routes++) {
      scene.judge(SET, setVerdict(true, { routes }));
      await scene.clock.advance(50);
    }
    await scene.clock.advance(10_000);
    expect(scene.timesOf(SET, start)).toEqual([1_000 + scene.server.latencyMs]);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(setVerdict(true, { routes: 16 })));
  });

  test("that keep changing are written at most once a second, and never later than that", async () => {
    const start = await programmedSet();
    for (let routes = 1; routes <= 1_000; routes++) {
      scene.judge(SET, setVerdict(true, { routes }));
      await scene.clock.advance(17);
    }
    await scene.clock.advance(10_000);
    const times = scene.timesOf(SET, start);
    expect(times.length).toBeLessThanOrEqual(17);
    for (const [i, time] of times.entries())
      if (i > 0) expect(time - (times[i - 1] ?? 0)).toBeGreaterThanOrEqual(1_000);
    expect(times.at(-1)).toBeLessThanOrEqual(1_000 * 17 + 1_000 + AT_ONCE);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(setVerdict(true, { routes: 1_000 })));
  });

  test("that come back to what is written are no write", async () => {
    await programmedSet();
    scene.judge(SET, setVerdict(true, { routes: 1 }));
    await scene.clock.advance(500);
    scene.judge(SET, setVerdict(true, { routes: 0 }));
    await scene.clock.advance(10_000);
    expect(scene.server.writes).toEqual([]);
  });

  test("go along with a condition, which is written at once", async () => {
    const start = await programmedSet();
    scene.judge(SET, setVerdict(true, { routes: 3 }));
    await scene.clock.advance(300);
    const news = setVerdict(true, { routes: 4, conflicted: true });
    scene.judge(SET, news);
    await scene.clock.advance(AT_ONCE);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(news));
    await scene.clock.advance(10_000);
    expect(scene.timesOf(SET, start)).toEqual([expect.closeTo(312, 0)]);
  });

  test("that change while a status is on its way are written a second after that", async () => {
    const start = await programmedSet();
    scene.server.latencyMs = 100;
    scene.judge(SET, setVerdict(true, { conflicted: true }));
    await scene.clock.advance(60);
    scene.judge(SET, setVerdict(true, { conflicted: true, routes: 1 }));
    await scene.clock.advance(10_000);
    expect(scene.timesOf(SET, start)).toEqual([110, 1_110]);
  });

  test("do not count as the time that a change takes to be told", async () => {
    scene.first.told.length = 0;
    scene.judge(SET, setVerdict(true), scene.clock.now());
    await scene.clock.advance(5_000);
    scene.judge(SET, setVerdict(true, { routes: 1 }), scene.clock.now());
    await scene.clock.advance(5_000);
    expect(scene.server.writesOf(SET)).toHaveLength(2);
    expect(scene.first.told.map((seconds) => Math.round(seconds * 1000))).toEqual([14]);
  });

  test("of a Gateway whose sets come and go make at most 60 writes a minute", async () => {
    scene.judge(GATEWAY, gatewayVerdict(0));
    await scene.clock.advance(5_000);
    scene.server.writes.length = 0;
    for (let sets = 1; sets <= 2_000; sets++) {
      scene.judge(GATEWAY, gatewayVerdict(sets));
      await scene.clock.advance(30);
    }
    expect(scene.server.writes.length).toBeLessThanOrEqual(60);
    await scene.clock.advance(1_000 + AT_ONCE);
    expect(summary(scene.server.statusOf(GATEWAY))).toBe(summaryOf(gatewayVerdict(2_000)));
  });
});

describe("words", () => {
  test("of a condition that says the same, such as which replicas lag, are written at most once a second", async () => {
    scene.judge(GATEWAY, gatewayVerdict(0));
    await scene.clock.advance(5_000);
    scene.server.writes.length = 0;
    for (let round = 1; round <= 100; round++) {
      const words = round % 2 === 0 ? "served" : `served; ${round} of 200 replicas lag`;
      scene.judge(GATEWAY, gatewayVerdict(0, { words }));
      await scene.clock.advance(100);
    }
    expect(scene.server.writes.length).toBeLessThanOrEqual(10);
    await scene.clock.advance(1_000 + AT_ONCE);
    expect(JSON.stringify(scene.server.statusOf(GATEWAY))).not.toContain("lag");
  });

  test("a Gateway that is served nowhere for less than a second does not say so, one for longer does", async () => {
    scene.judge(GATEWAY, gatewayVerdict(0));
    await scene.clock.advance(5_000);
    scene.server.writes.length = 0;
    scene.judge(GATEWAY, gatewayVerdict(0, { programmed: false }));
    await scene.clock.advance(900);
    scene.judge(GATEWAY, gatewayVerdict(0));
    await scene.clock.advance(5_000);
    expect(scene.server.writes).toEqual([]);
    scene.judge(GATEWAY, gatewayVerdict(0, { programmed: false }));
    await scene.clock.advance(1_000 + AT_ONCE);
    expect(summary(scene.server.statusOf(GATEWAY))).toContain("Programmed=False/Pending");
    await scene.clock.advance(200);
    scene.judge(GATEWAY, gatewayVerdict(0));
    await scene.clock.advance(AT_ONCE);
    expect(summary(scene.server.statusOf(GATEWAY))).toContain("Programmed=True/Programmed");
  });
});

describe("sets with 16 routes each", () => {
  test("that are created at full speed are at most 1.5 writes each, none of them later than a second", async () => {
    const sets = Array.from({ length: 500 }, (_, i): Key => `ListenerSet/team-${i % 50}/set-${i}`);
    const late: string[] = [];
    // 25 sets a second: each is confirmed after 30 ms, and its routes come over 640 ms.
    for (let step = 0; step < sets.length + 26; step++) {
      const created = sets[step];
      if (created !== undefined) {
        scene.server.create(created);
        scene.judge(created, setVerdict(false));
      }
      for (let age = 1; age <= 16; age++) {
        const grown = sets[step - age];
        if (grown !== undefined) scene.judge(grown, setVerdict(true, { routes: age }));
      }
      const due = sets[step - 26];
      if (due !== undefined && !summary(scene.server.statusOf(due)).includes("Programmed=True"))
        late.push(due);
      await scene.clock.advance(40);
    }
    await scene.clock.advance(2_000);
    expect(late).toEqual([]);
    for (const set of sets) {
      expect(summary(scene.server.statusOf(set))).toBe(summaryOf(setVerdict(true, { routes: 16 })));
    }
    const written = scene.server.writes.filter(({ key }) => sets.includes(key)).length;
    expect(written / sets.length).toBeLessThanOrEqual(1.5);
  });

  test("that come two a second are written as soon as they are confirmed", async () => {
    for (let i = 0; i < 100; i++) {
      const key: Key = `ListenerSet/team-b/set-${i}`;
      await scene.create(key);
      scene.judge(key, setVerdict(true));
      await scene.clock.advance(AT_ONCE);
      expect(summary(scene.server.statusOf(key))).toBe(summaryOf(setVerdict(true)));
      await scene.clock.advance(500);
    }
  });
});

describe("a change of leader", () => {
  test("does not make a count wait anew that has waited under the old leader", async () => {
    await scene.end();
    scene = new Scene({ replicas: 2 });
    await scene.create(SET);
    await programmedSet();
    scene.judge(SET, setVerdict(true, { routes: 1 }));
    await scene.clock.advance(900);
    const [first, second] = scene.replicas;
    const ended = first?.resign();
    await scene.clock.advance(300);
    await ended;
    const start = scene.clock.now();
    second?.lead();
    await scene.clock.advance(10_000);
    expect(scene.timesOf(SET, start)).toEqual([expect.closeTo(12, 0)]);
    expect(summary(scene.server.statusOf(SET))).toBe(summaryOf(setVerdict(true, { routes: 1 })));
  });

  test("gathers what changed after the old leader's last write", async () => {
    await scene.end();
    scene = new Scene({ replicas: 2 });
    await scene.create(SET);
    await programmedSet();
    const [first, second] = scene.replicas;
    const ended = first?.resign();
    await scene.clock.advance(300);
    await ended;
    const start = scene.clock.now();
    scene.judge(SET, setVerdict(true, { routes: 1 }));
    second?.lead();
    await scene.clock.advance(500);
    scene.judge(SET, setVerdict(true, { routes: 2 }));
    await scene.clock.advance(10_000);
    expect(scene.timesOf(SET, start)).toEqual([expect.closeTo(1_002, 0)]);
  });

  test("gives pods a second to tell the new leader before it writes Pending", async () => {
    await scene.end();
    scene = new Scene({ replicas: 2 });
    await scene.create(SET);
    const [first, second] = scene.replicas;
    const ended = first?.resign();
    await ended;
    scene.judge(SET, setVerdict(false));
    await scene.clock.advance(3_000);
    const start = scene.clock.now();
    second?.lead();
    await scene.clock.advance(200);
    scene.judge(SET, setVerdict(true));
    await scene.clock.advance(10_000);
    expect(scene.timesOf(SET, start)).toEqual([expect.closeTo(212, 0)]);
  });
});
