/**
 * What could be told once and lost: failures, answers that come late, watches that show the past,
 * other leaders.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Key } from "../../../src/api/key.ts";
import { GATEWAY, gatewayVerdict, Scene, setVerdict, summary, summaryOf } from "./status-scene.ts";

const SET: Key = "ListenerSet/team-a/web";
const SERVED = summaryOf(setVerdict(true));

let scene: Scene;

async function begin(options: ConstructorParameters<typeof Scene>[0] = {}): Promise<void> {
  scene = new Scene(options);
  await scene.create(SET);
  scene.judge(SET, setVerdict(true));
  await scene.clock.advance(5_000);
  expect(summary(scene.server.statusOf(SET))).toBe(SERVED);
}

function said(key: Key = SET): string {
  return summary(scene.server.statusOf(key));
}

/** The next so many requests of a method go wrong. */
function fail(method: string, times: number, fault: { refused: number } | { lost: true }): void {
  let left = times;
  scene.server.fault = (asked) => (asked === method && left-- > 0 ? fault : undefined);
}

beforeEach(() => begin());
afterEach(() => scene.end());

describe("a write", () => {
  test.each([400, 403, 404, 409, 422, 429, 500, 503])(
    "that is refused with %i is made again",
    async (status) => {
      fail("PATCH", 7, { refused: status });
      const news = setVerdict(true, { routes: 2 });
      scene.judge(SET, news);
      await scene.clock.advance(300_000);
      expect(said()).toBe(summaryOf(news));
    },
  );

  test("after a conflict is made where the object is not found at first: an API server may have just begun", async () => {
    scene.server.fault = (method) => ({ refused: method === "PATCH" ? 409 : 404 });
    const news = setVerdict(true, { routes: 2 });
    scene.judge(SET, news);
    await scene.clock.advance(3_000);
    scene.server.fault = () => undefined;
    await scene.clock.advance(60_000);
    expect(said()).toBe(summaryOf(news));
  });

  test("whose answer is lost is not made again", async () => {
    scene.server.writes.length = 0;
    fail("PATCH", 1, { lost: true });
    scene.judge(SET, setVerdict(true, { conflicted: true }));
    await scene.clock.advance(60_000);
    expect(scene.server.writes).toHaveLength(1);
    expect(scene.first.rewrites).toBe(0);
  });

  test("whose object changed meanwhile carries the newest state over the newest object", async () => {
    scene.judge(SET, setVerdict(true, { routes: 2 }));
    await scene.clock.advance(1_001);
    const foreign = { type: "example.com/Checked", status: "True", reason: "Checked", message: "" };
    const { conditions } = scene.server.statusOf(SET) as { conditions: readonly object[] };
    scene.server.watchMs = 5_000;
    scene.server.overwrite(SET, { conditions: [...conditions, foreign] });
    scene.judge(SET, setVerdict(true, { routes: 3 }));
    await scene.clock.advance(20_000);
    expect(said()).toContain("example.com/Checked=True");
    expect(said()).toContain("3 [");
  });

  test("that somebody undoes is made again", async () => {
    scene.server.overwrite(SET, { conditions: [], listeners: [] });
    await scene.clock.advance(1_000);
    expect(said()).toBe(SERVED);
  });
});

describe("an answer that comes late", () => {
  beforeEach(() => {
    scene.server.answerMs = 500;
  });

  test("does not hide the object that was created in place of the one that it is about", async () => {
    scene.judge(SET, setVerdict(true, { conflicted: true }));
    await scene.clock.advance(100);
    scene.server.remove(SET);
    scene.server.create(SET);
    await scene.clock.advance(60_000);
    expect(said()).toBe(summaryOf(setVerdict(true, { conflicted: true })));
  });

  test("does not bring back an object that is gone", async () => {
    scene.judge(SET, setVerdict(true, { conflicted: true }));
    await scene.clock.advance(100);
    scene.server.remove(SET);
    await scene.clock.advance(60_000);
    expect(scene.first.writer.live(SET)).toBeUndefined();
    scene.judge(SET, undefined);
    expect(scene.first.writer.backlog).toBe(0);
  });

  test("to a read does not undo what the watch has brought since", async () => {
    fail("PATCH", 1, { refused: 409 });
    scene.judge(SET, setVerdict(true, { conflicted: true }));
    // The read after the conflict is on its way back, with what is about to be overwritten.
    await scene.clock.advance(100);
    scene.judge(SET, setVerdict(true));
    scene.server.overwrite(SET, { conditions: [] });
    await scene.clock.advance(60_000);
    expect(said()).toBe(SERVED);
  });
});

describe("the watch", () => {
  test("that shows an older object for long is believed: a database can be restored", async () => {
    const earlier = scene.server.get(SET);
    if (earlier === undefined) throw new Error("the set is there");
    scene.judge(SET, setVerdict(true, { conflicted: true }));
    await scene.clock.advance(5_000);
    scene.server.restore(SET, earlier);
    await scene.clock.advance(60_000);
    expect(said()).toBe(summaryOf(setVerdict(true, { conflicted: true })));
  });

  test("that is merely slow costs no read", async () => {
    scene.server.watchMs = 3_000;
    scene.server.reads.length = 0;
    for (let routes = 1; routes <= 20; routes++) {
      scene.judge(SET, setVerdict(true, { routes }));
      await scene.clock.advance(1_500);
    }
    await scene.clock.advance(60_000);
    expect(said()).toBe(summaryOf(setVerdict(true, { routes: 20 })));
    expect(scene.server.reads).toEqual([]);
  });

  test("a verdict on an earlier object of that name is not written on a new one", async () => {
    scene.server.edit(SET);
    await scene.clock.advance(10);
    scene.judge(SET, setVerdict(true, { generation: 2 }));
    await scene.clock.advance(5_000);
    scene.server.remove(SET);
    scene.server.create(SET);
    scene.server.writes.length = 0;
    await scene.clock.advance(5_000);
    expect(scene.server.writes).toEqual([]);
    scene.judge(SET, setVerdict(true));
    await scene.clock.advance(5_000);
    expect(said()).toBe(SERVED);
  });
});

describe("an object", () => {
  test("that is deleted while its counts are gathered is not written, and its successor is", async () => {
    scene.server.writes.length = 0;
    scene.judge(SET, setVerdict(true, { routes: 1 }));
    await scene.clock.advance(500);
    scene.server.remove(SET);
    await scene.clock.advance(10);
    scene.judge(SET, undefined);
    await scene.clock.advance(60_000);
    expect(scene.server.writes).toEqual([]);
    await scene.create(SET);
    scene.judge(SET, setVerdict(true));
    await scene.clock.advance(50);
    expect(said()).toBe(SERVED);
  });

  test("whose CRD learns a field gets it", async () => {
    await scene.create(GATEWAY);
    scene.server.unknownFields = ["attachedListenerSets"];
    scene.judge(GATEWAY, gatewayVerdict(3));
    await scene.clock.advance(60_000);
    scene.server.unknownFields = [];
    scene.server.writes.length = 0;
    await scene.clock.advance(60_000);
    expect(scene.server.writes).toEqual([]);
    scene.first.writer.reconsiderInstallation();
    await scene.clock.advance(5_000);
    expect(scene.server.statusOf(GATEWAY)).toMatchObject({ attachedListenerSets: 3 });
  });

  test("with a competing writer gets new content at once, and old content ever more rarely", async () => {
    scene.server.writes.length = 0;
    for (let round = 0; round < 600; round++) {
      scene.server.overwrite(SET, { conditions: [] });
      await scene.clock.advance(1_000);
    }
    expect(scene.server.writes.length).toBeLessThan(15);
    const news = setVerdict(true, { conflicted: true });
    scene.judge(SET, news);
    await scene.clock.advance(250);
    expect(said()).toBe(summaryOf(news));
  });
});

describe("a change of the leader", () => {
  beforeEach(async () => {
    await scene.end();
    await begin({ replicas: 2 });
  });

  test("while counts are gathered leaves them to the next one", async () => {
    scene.server.writes.length = 0;
    const news = setVerdict(true, { routes: 7 });
    scene.judge(SET, news);
    await scene.clock.advance(500);
    const [first, second] = scene.replicas;
    void first?.resign();
    await scene.clock.advance(5_000);
    expect(scene.server.writes).toEqual([]);
    second?.lead();
    await scene.clock.advance(1_100);
    expect(said()).toBe(summaryOf(news));
    expect(scene.server.writes).toHaveLength(1);
  });

  test("writes nothing where all is said, neither then nor when the first one leads again", async () => {
    const [first, second] = scene.replicas;
    scene.server.writes.length = 0;
    for (const replica of [second, first, second]) {
      for (const each of scene.replicas) void each.resign();
      replica?.lead();
      await scene.clock.advance(30_000);
    }
    expect(scene.server.writes).toEqual([]);
  });

  test("two that both think they lead end in one state, without rewriting each other's", async () => {
    const [first, second] = scene.replicas;
    second?.lead();
    for (let routes = 1; routes <= 10; routes++) {
      scene.judge(SET, setVerdict(true, { routes, conflicted: routes % 3 === 0 }));
      await scene.clock.advance(300);
    }
    void first?.resign();
    await scene.clock.advance(60_000);
    expect(said()).toBe(summaryOf(setVerdict(true, { routes: 10 })));
    expect(scene.replicas.map(({ rewrites }) => rewrites)).toEqual([0, 0]);
  });
});

describe("a new leader that has not heard of its data planes", () => {
  beforeEach(async () => {
    await scene.end();
    await begin({ replicas: 2, timing: { graceMs: 15_000 } });
    void scene.first.resign();
    scene.server.writes.length = 0;
  });

  test("leaves Programmed as it is and tells everything else", async () => {
    scene.replicas[1]?.lead();
    scene.judge(SET, setVerdict(false, { routes: 5 }));
    await scene.clock.advance(1_100);
    expect(said()).toBe(summaryOf(setVerdict(true, { routes: 5 })));
    await scene.clock.advance(10_000);
    expect(scene.server.writes).toHaveLength(1);
  });

  test("says Pending when nobody has confirmed after a while, which does not count as a rewrite", async () => {
    scene.replicas[1]?.lead();
    scene.judge(SET, setVerdict(false, { routes: 5 }));
    await scene.clock.advance(17_000);
    expect(said()).toBe(summaryOf(setVerdict(false, { routes: 5 })));
    expect(scene.server.writes).toHaveLength(2);
    expect(scene.replicas[1]?.rewrites).toBe(0);
  });

  test("writes nothing when the data plane confirms in time", async () => {
    scene.replicas[1]?.lead();
    scene.judge(SET, setVerdict(false));
    await scene.clock.advance(10_000);
    scene.judge(SET, setVerdict(true));
    await scene.clock.advance(60_000);
    expect(scene.server.writes).toEqual([]);
  });
});
