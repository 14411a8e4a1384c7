/**
 * What pods serve, over the real stream, as each of two controllers sees it: the one that feeds
 * them, and the one that may be the leader.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { DataPlane } from "../../../src/dataplanes/dataplane.ts";
import { runPlanClient } from "../../../src/dataplanes/remote/subscriber/plan-client.ts";
import { PlanJournal } from "../../../src/dataplanes/remote/subscriber/plan-journal.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { selfSigned } from "../support/certificates.ts";
import { PublishingServer } from "./publishing-server.ts";

vi.mock("node:dns/promises", () => ({
  lookup: async () => ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 })),
}));

const GATEWAY = "infra/shared";
const PATIENT = { timeout: 20_000, interval: 20 };
const LAG = { lagMs: 300, firstMs: 300 };
const pair = selfSigned(["localhost"]);
const cleanups: (() => Promise<unknown> | unknown)[] = [];
let controllers: readonly PublishingServer[];
let port: number;

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

beforeEach(async () => {
  const first = controller("127.0.0.1", 0);
  port = await first.listen();
  const second = controller("127.0.0.2", port);
  await second.listen();
  controllers = [first, second];
});

function controller(address: string, at: number): PublishingServer {
  const server = new PublishingServer({
    features: new Set(),
    certificate: pair.cert,
    key: pair.key,
    address,
    port: at,
    authorize: async () => true,
    lag: LAG,
  });
  cleanups.push(() => server.close());
  return server;
}

function apply(...items: readonly PlanItem[]): void {
  for (const server of controllers) server.apply({ upserts: items, removes: [] });
}

function item(id: string, clientCertificate = "c"): PlanItem {
  return { type: "gateway", id, gateway: GATEWAY, clientCertificate };
}

/** Its data plane serves what it was given when the test lets it. */
class Pod {
  readonly #name: string;
  #gate: PromiseWithResolvers<boolean> | undefined;
  #stop: (() => Promise<void>) | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  async start(): Promise<this> {
    const directory = mkdtempSync(join(tmpdir(), "mergeway-lag-"));
    cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
    const dataPlane: DataPlane = {
      features: new Set(),
      apply: () => {},
      served: () => this.#gate?.promise ?? Promise.resolve(true),
      onReport: () => {},
      close: async () => {},
    };
    const stopping = new AbortController();
    const running = runPlanClient(
      {
        controller: `localhost:${port}`,
        authority: pair.cert,
        gateway: GATEWAY,
        pod: this.#name,
        token: async () => "token",
        journal: await PlanJournal.open(directory),
        dataPlane,
      },
      stopping.signal,
    );
    this.#stop = async () => {
      stopping.abort();
      await running;
    };
    cleanups.push(this.#stop);
    return this;
  }

  async stop(): Promise<void> {
    await this.#stop?.();
  }

  freeze(): void {
    this.#gate = Promise.withResolvers();
  }

  thaw(): void {
    this.#gate?.resolve(true);
    this.#gate = undefined;
  }
}

function confirmed(): unknown {
  return controllers.map((server) => server.confirmed.get(GATEWAY));
}

const both = (replicas: number, ...lagging: readonly string[]): unknown => [
  { replicas, lagging },
  { replicas, lagging },
];

async function twoPods(): Promise<readonly [Pod, Pod]> {
  apply(item("one"), item("two"));
  for (const server of controllers)
    server.expect(
      GATEWAY,
      ["a", "b"].map((name) => ({ name, isReady: true })),
    );
  const pods = [await new Pod("a").start(), await new Pod("b").start()] as const;
  await expect
    .poll(() => controllers.flatMap(({ lags }) => lags.map((each) => each.unacknowledgedSeconds)), PATIENT)
    .toEqual([0, 0]);
  return pods;
}

describe("a pod whose data plane does not apply a change", () => {
  test("lags for both controllers, until it has applied it", async () => {
    const [, b] = await twoPods();
    b.freeze();
    apply(item("one", "another"));
    await expect.poll(confirmed, PATIENT).toEqual(both(2, "b"));
    const owed = controllers.flatMap(({ lags }) => lags).find(({ pod }) => pod === "b");
    expect(owed?.unacknowledgedSeconds).toBeGreaterThan(0);
    b.thaw();
    await expect.poll(confirmed, PATIENT).toEqual(both(2));
  });

  test("does not lag when the change is reverted", async () => {
    const [, b] = await twoPods();
    b.freeze();
    apply(item("one", "another"));
    await expect.poll(confirmed, PATIENT).toEqual(both(2, "b"));
    apply(item("one"));
    await expect.poll(confirmed, PATIENT).toEqual(both(2));
  });

  test("still lags without a stream, until it is gone from its Service", async () => {
    const [, b] = await twoPods();
    b.freeze();
    apply(item("three"));
    await expect.poll(confirmed, PATIENT).toEqual(both(2, "b"));
    await b.stop();
    // Nobody says when a stream has ended at the other side; the newest plan makes the rest of it
    // visible.
    await expect.poll(() => controllers.flatMap(({ lags }) => lags).length, PATIENT).toBe(1);
    expect(confirmed()).toEqual(both(2, "b"));
    for (const server of controllers) server.expect(GATEWAY, [{ name: "a", isReady: true }]);
    expect(confirmed()).toEqual(both(1));
  });
});

test("a controller does not count pods as up to date that have another controller's plan", async () => {
  await twoPods();
  // The second one knows something that the first does not.
  controllers[1]?.apply({ upserts: [item("newer")], removes: [] });
  // Whoever takes its items from the one is behind for the other.
  const lagging = (): readonly string[] =>
    controllers.flatMap(({ confirmed: found }) => found.get(GATEWAY)?.lagging ?? []);
  await expect.poll(() => lagging().toSorted(), PATIENT).toEqual(["a", "b"]);
  controllers[0]?.apply({ upserts: [item("newer")], removes: [] });
  await expect.poll(confirmed, PATIENT).toEqual(both(2));
});
