/** The file that a real Envoy counts its requests in, and who reads it. */
import { existsSync, mkdtempSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EnvoyDataPlane } from "../../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { TrafficLines } from "../../../../src/dataplanes/envoy/traffic/traffic-line.ts";
import { TrafficLog } from "../../../../src/dataplanes/envoy/traffic/traffic-log.ts";
import { TrafficCounts } from "../../../../src/dataplanes/traffic/traffic-counts.ts";
import { setStage } from "../../contract/stage.ts";
import { createEnvoy } from "../../support/envoy-plane.ts";
import { ask } from "../../support/http-peers.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../../support/plan-builder.ts";
import type { PlaneUnderTest } from "../../support/plane-under-test.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
/** Long enough that what Envoy has buffered is not taken for lost. */
const LOOK_MS = 150;
const SOON = { timeout: 20_000, interval: 20 };

describe("the log that requests are counted in", () => {
  let directory: string;
  let path: string;
  let envoy: EnvoyDataPlane;
  let plane: PlaneUnderTest;
  const readers = new Set<TrafficLog>();
  const stage = setStage((options) => {
    envoy = createEnvoy(options, {
      serve: { listen: { path: join(directory, "ads") }, gatewayOf: () => undefined, trafficLog: path },
    });
    return envoy;
  });

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "mergeway-traffic-"));
    path = join(directory, "traffic");
    plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
  });

  afterEach(async () => {
    for (const reader of readers) await reader.close();
    readers.clear();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  });

  function read(rotateBytes?: number): { readonly counts: TrafficCounts; readonly log: TrafficLog } {
    const counts = new TrafficCounts();
    counts.apply({ upserts: [shop], removes: [] });
    const log = new TrafficLog({
      path,
      gateway,
      counts,
      ask: async (method, at) => (await envoy.process(gateway)?.admin(method, at)) ?? "",
      lookMs: LOOK_MS,
      ...(rotateBytes === undefined ? {} : { rotateBytes }),
    });
    readers.add(log);
    return { counts, log };
  }

  async function request(times: number): Promise<void> {
    for (let asked = 0; asked < times; asked++)
      expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
  }

  function counted({ counts }: { readonly counts: TrafficCounts }): number {
    return counts.byListener()[0]?.requests ?? 0;
  }

  test("a reader that comes late counts what was served without one, and Envoy never waited", async () => {
    await request(20);
    const late = read();
    await expect.poll(() => counted(late), SOON).toBe(20);
  });

  test("the next reader goes on where the last one ended, and counts nothing twice", async () => {
    const first = read();
    await request(7);
    await expect.poll(() => counted(first), SOON).toBe(7);
    await first.log.close();
    await request(5);
    const second = read();
    await expect.poll(() => counted(second), SOON).toBe(5);
    await request(1);
    await expect.poll(() => counted(second), SOON).toBe(6);
    expect(second.counts.uncounted).toBe(0);
  });

  test("a file that is long enough is replaced, and every line of it is counted", async () => {
    const reader = read(1_000);
    const inodes = new Set<number>();
    for (let turn = 0; turn < 8; turn++) {
      await request(20);
      await expect.poll(() => counted(reader), SOON).toBe(20 * (turn + 1));
      if (existsSync(path)) inodes.add(statSync(path).ino);
    }
    expect(inodes.size).toBeGreaterThan(1);
    expect(reader.counts.uncounted).toBe(0);
  });

  test("what was served and is in no file is told as uncounted", async () => {
    const first = read();
    await request(3);
    await expect.poll(() => counted(first), SOON).toBe(3);
    await first.log.close();
    await request(4);
    // As if the volume had been full.
    await expect.poll(() => statSync(path).size, SOON).toBeGreaterThan(300);
    await new Promise((resolve) => setTimeout(resolve, 600));
    truncateSync(path, 0);
    const second = read();
    await request(2);
    await expect.poll(() => second.counts.uncounted, SOON).toBe(4);
    expect(counted(second)).toBe(2);
    await request(2);
    await expect.poll(() => counted(second), SOON).toBe(4);
    expect(second.counts.uncounted).toBe(4);
  });

  test("a tenant's change does not change the listener of Envoy", async () => {
    const listeners = async (): Promise<string> =>
      (await envoy.process(gateway)?.admin("GET", "/config_dump?resource=dynamic_listeners")) ?? "";
    const before = await listeners();
    expect(before).toContain(path);
    const other = listener("other", http, "other.example");
    await plane.apply({
      upserts: [other, host(other, "other.example", [rule({ action: forwardTo("b") })])],
      removes: [],
    });
    expect(await listeners()).toBe(before);
  });
});

describe("lines of the log", () => {
  function count(
    text: string,
  ): readonly [TrafficCounts, { readonly bytes: number; readonly requests: number }] {
    const counts = new TrafficCounts();
    counts.apply({ upserts: [shop], removes: [] });
    return [counts, new TrafficLines(gateway, counts.tally).count(Buffer.from(text, "latin1"))];
  }

  test("a line that is not complete is left for the next look", () => {
    const line = "1500 1 0 5 1 200\t-\tvia_upstream\tapps/b\t=shop shop.example HTTPRoute apps route 0 0\n";
    const [counts, { bytes, requests }] = count(`${line}15`);
    expect([bytes, requests]).toEqual([line.length, 1]);
    expect(counts.byListener()).toEqual([{ listener: "ListenerSet/shop/own#shop", requests: 1, errors: 0 }]);
  });

  test("lines that make no sense count as requests of nobody and break nothing", () => {
    const [counts, { requests }] = count(
      "\n- - - - - - -\t-\t-\t-\nnonsense\n\xff\xfe\n999999999999999999999 1\n",
    );
    expect(requests).toBe(5);
    const [first] = [...counts.listeners()];
    expect(first?.[0].kind).toBe("None");
    expect(first?.[1].sums.every((sum) => Number.isFinite(sum))).toBe(true);
  });
});
