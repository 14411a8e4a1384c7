import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import {
  type Bucket,
  createBucketMemory,
  RateBuckets,
  type Refill,
  refillOf,
} from "../../../../src/dataplanes/embedded/guards/rate-buckets.ts";
import { seeded } from "../../support/sockets.ts";

const HOUR = 3_600_000;
const MS = 1_000_000n;

function refill(requests: number, periodMs: number, burst: number): Refill {
  const found = refillOf({ requests, periodMs, burst });
  if (typeof found !== "object") throw new Error(`no refill: ${found}`);
  return found;
}

function named(name: string, tenant = "team"): Bucket {
  return { tenant, name };
}

/** A clock that stands until it is told to go on. */
function standing(slots?: number): { buckets: RateBuckets; pass(ms: number): void; at(): number } {
  let now = 5_000_000_000n;
  const buckets = new RateBuckets(createBucketMemory(slots), () => now);
  return {
    buckets,
    pass: (ms) => {
      now += BigInt(Math.round(ms * 1e6));
    },
    at: () => Number(now) / 1e6,
  };
}

describe("token buckets", () => {
  test("a bucket lets through what a token bucket of the same limit lets through", () => {
    const random = seeded(11);
    for (const [requests, periodMs, burst] of [
      [1, 1000, 1],
      [5, 1000, 10],
      [100, 500, 3],
      [4, 10, 50],
    ] as const) {
      const { buckets, pass, at } = standing();
      const limit = refill(requests, periodMs, burst);
      let tokens: number = burst;
      let last = at();
      for (let round = 0; round < 2_000; round++) {
        // Whole tokens, so that rounding has no say.
        pass((periodMs / requests) * Math.floor(random() * 3));
        tokens = Math.min(burst, tokens + ((at() - last) * requests) / periodMs);
        last = at();
        const expected = tokens >= 0.999;
        expect(buckets.take(named("one"), limit) === 0n).toBe(expected);
        if (expected) tokens -= 1;
      }
    }
  });

  test("who is refused is told when the next token comes, and then there is one", () => {
    const { buckets, pass } = standing();
    const limit = refill(1, 10_000, 2);
    expect([buckets.take(named("a"), limit), buckets.take(named("a"), limit)]).toEqual([0n, 0n]);
    expect(buckets.take(named("a"), limit)).toBe(10_000n * MS);
    pass(4_000);
    expect(buckets.take(named("a"), limit)).toBe(6_000n * MS);
    pass(6_000);
    expect(buckets.take(named("a"), limit)).toBe(0n);
    expect(buckets.take(named("b"), limit)).toBe(0n);
  });

  test("no limit is too small, too large or too slow", () => {
    expect(refillOf({ requests: 0, periodMs: 1000, burst: 5 })).toBe("never");
    expect(refillOf({ requests: 5, periodMs: 1000, burst: 0 })).toBe("never");
    for (const broken of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
      expect(refillOf({ requests: broken, periodMs: 1000, burst: 5 })).toBe(undefined);
      expect(refillOf({ requests: 5, periodMs: broken, burst: 5 })).toBe(undefined);
      expect(refillOf({ requests: 5, periodMs: 1000, burst: broken })).toBe(undefined);
    }
    expect(refillOf({ requests: 5, periodMs: 0, burst: 5 })).toBe(undefined);
    const sizes = [1, 2 ** 31, 2 ** 53 - 1, 2 ** 53];
    for (const requests of sizes) {
      for (const burst of sizes) {
        for (const periodMs of [1, 1000, 365 * 24 * HOUR, Number.MAX_SAFE_INTEGER]) {
          const { buckets, pass } = standing();
          const limit = refill(requests, periodMs, burst);
          expect(buckets.take(named("a"), limit)).toBe(0n);
          const second = buckets.take(named("a"), limit);
          expect(second === 0n).toBe(burst > 1);
          expect(second).toBeGreaterThanOrEqual(0n);
          expect(second).toBeLessThanOrEqual(2n ** 61n);
          pass(1000);
          expect(buckets.take(named("a"), limit)).toBeGreaterThanOrEqual(0n);
        }
      }
    }
  });

  test("any number of names has room in the same memory, and names with little left stay longest", () => {
    const memory = createBucketMemory(64);
    const bytes = memory.words.byteLength;
    let now = 5_000_000_000n;
    const buckets = new RateBuckets(memory, () => now);
    const slow = refill(1, HOUR, 100);
    for (let taken = 0; taken < 100; taken++) expect(buckets.take(named("busy"), slow)).toBe(0n);
    for (let index = 0; index < 20_000; index++) {
      now += 1_000n;
      expect(buckets.take(named(`name ${index}`), slow)).toBe(0n);
    }
    expect(memory.words.byteLength).toBe(bytes);
    expect(buckets.take(named("busy"), slow)).toBeGreaterThan(0n);
  });

  test("buckets that are full again make room before any other", () => {
    const { buckets, pass } = standing(8);
    const slow = refill(1, HOUR, 1);
    const fast = refill(1000, 1000, 1);
    for (let index = 0; index < 7; index++) expect(buckets.take(named(`slow ${index}`), slow)).toBe(0n);
    for (let index = 0; index < 1_000; index++) {
      pass(2);
      expect(buckets.take(named(`fast ${index}`), fast)).toBe(0n);
    }
    for (let index = 0; index < 7; index++)
      expect(buckets.take(named(`slow ${index}`), slow)).toBeGreaterThan(0n);
  });

  test("many long buckets of one tenant do not displace the short ones of another", () => {
    const { buckets, pass } = standing();
    const day = refill(1, 24 * HOUR, 1);
    const short = refill(10, 1000, 10);
    let attacks = 0;
    const attack = (count: number): void => {
      for (const end = attacks + count; attacks < end; attacks++) {
        buckets.take(named(`evil ${attacks}`, "evil"), day);
      }
    };
    attack(200_000);
    const keys = 2_000;
    const seconds = 2;
    let passed = 0;
    for (let round = 0; round < seconds * 20; round++) {
      for (let key = 0; key < keys; key++) {
        if (buckets.take(named(`good ${key}`, "good"), short) === 0n) passed++;
        if (buckets.take(named(`good ${key}`, "good"), short) === 0n) passed++;
      }
      attack(1_000);
      pass(50);
    }
    const allowed = keys * (10 + 10 * seconds);
    expect(passed / allowed).toBeLessThan(1.02);
    expect(passed / allowed).toBeGreaterThan(0.9);
  }, 60_000);

  test("a tenant with more keys than there is room leaves another what it has, and gives way to its share", () => {
    const { buckets } = standing(8);
    const day = refill(1, 24 * HOUR, 1);
    const hour = refill(1, HOUR, 1);
    for (let index = 0; index < 100; index++) buckets.take(named(`evil ${index}`, "evil"), day);
    const good = Array.from({ length: 4 }, (_, index) => named(`good ${index}`, "good"));
    for (const each of good) expect(buckets.take(each, hour)).toBe(0n);
    for (let index = 100; index < 200; index++) buckets.take(named(`evil ${index}`, "evil"), day);
    for (const each of good) expect(buckets.take(each, hour)).toBeGreaterThan(0n);
    // The fifth is beyond the half that the two share.
    expect(buckets.take(named("good 4", "good"), hour)).toBe(0n);
    const left = Array.from({ length: 200 }, (_, index) => named(`evil ${index}`, "evil"));
    expect(left.filter((each) => buckets.take(each, day) > 0n).length).toBeGreaterThanOrEqual(3);
  });

  test("a tenant that comes to a set of eight others displaces by chance, not the shortest", () => {
    const displaced = new Set<string>();
    for (let round = 0; round < 100; round++) {
      const { buckets } = standing(8);
      const others = Array.from({ length: 8 }, (_, index) => named("key", `team ${index}`));
      for (const [index, { tenant }] of others.entries())
        buckets.take(named(tenant, tenant), refill(1, HOUR * (index + 1), 1));
      buckets.take(named("new", "new"), refill(1, HOUR, 1));
      for (const { tenant } of others.toReversed()) {
        if (buckets.take(named(tenant, tenant), refill(1, HOUR, 1)) !== 0n) continue;
        displaced.add(tenant);
        break;
      }
    }
    expect(displaced.size).toBeGreaterThan(4);
  });

  test("a lock that a dead thread has left behind is taken over", () => {
    const memory = createBucketMemory(8);
    const words = new BigInt64Array(memory.words);
    const buckets = new RateBuckets(memory);
    const limit = refill(1, HOUR, 2);
    words[0] = process.hrtime.bigint();
    expect(buckets.take(named("a"), limit)).toBe(0n);
    expect(words[0]).toBe(0n);
    // It may have died in the middle of a replacement as well.
    for (let slot = 1; slot < words.length; slot += 3) words[slot + 1] = -1n;
    words[0] = process.hrtime.bigint();
    expect(buckets.take(named("a"), limit)).toBe(0n);
    expect(buckets.take(named("a"), limit)).toBe(0n);
    expect(buckets.take(named("a"), limit)).toBeGreaterThan(0n);
  });

  test("which names share a set is another matter in every process", () => {
    /** Which of the names are left when all have come, in a table with too little room. */
    const left = (): string => {
      const { buckets } = standing(16);
      const limit = refill(1, HOUR, 1);
      const names = Array.from({ length: 64 }, (_, index) => `name ${index}`);
      for (const name of names) buckets.take(named(name), limit);
      return names.map((name) => (buckets.take(named(name), limit) === 0n ? "0" : "1")).join("");
    };
    expect(new Set(Array.from({ length: 10 }, left)).size).toBeGreaterThan(1);
  });

  test("threads that take from the same buckets at the same time get each token once", async () => {
    const names = 1_000;
    const burst = 20;
    // So much room that no set gets more names than it has slots.
    const memory = createBucketMemory(65_536);
    const start = new SharedArrayBuffer(4);
    const counts = await Promise.all(
      Array.from({ length: 2 }, () => takeInThread({ memory, start, names, burst, rounds: burst })),
    );
    const passed = counts.reduce((sum, count) => sum + count, 0);
    expect(passed).toBe(names * burst);
  }, 60_000);
});

interface Task {
  readonly memory: ReturnType<typeof createBucketMemory>;
  readonly start: SharedArrayBuffer;
  readonly names: number;
  readonly burst: number;
  readonly rounds: number;
}

/** How many tokens the thread got. Two threads begin with each of the names together. */
async function takeInThread(task: Task): Promise<number> {
  const file = new URL("../../../../src/dataplanes/embedded/guards/rate-buckets.ts", import.meta.url);
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    import(${JSON.stringify(file.href)}).then(({ RateBuckets, refillOf }) => {
      const { memory, start, names, burst, rounds } = workerData;
      const buckets = new RateBuckets(memory);
      const refill = refillOf({ requests: 1, periodMs: ${HOUR}, burst });
      const ready = new Int32Array(start);
      let passed = 0;
      for (let name = 0; name < names; name++) {
        Atomics.add(ready, 0, 1);
        while (Atomics.load(ready, 0) < 2 * (name + 1)) {}
        for (let round = 0; round < rounds; round++) {
          if (buckets.take({ tenant: "team", name: "name " + name }, refill) === 0n) passed++;
        }
      }
      parentPort.postMessage(passed);
    });
  `;
  const worker = new Worker(program, { eval: true, workerData: task, execArgv: [] });
  return await new Promise<number>((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
  });
}
