/**
 * A pod takes its plan from the controller that is ahead, and reports an item to the other one
 * before that one has it. Found on a cluster: 108 of 510 ListenerSets stayed `Programmed=False` for
 * ever, though they were served.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import type { DataPlane } from "../../../src/dataplanes/dataplane.ts";
import { runPlanClient } from "../../../src/dataplanes/remote/subscriber/plan-client.ts";
import { PlanJournal } from "../../../src/dataplanes/remote/subscriber/plan-journal.ts";
import type { ItemReport } from "../../../src/plan/item-report.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { selfSigned } from "../support/certificates.ts";
import { PublishingServer } from "./publishing-server.ts";

vi.mock("node:dns/promises", () => ({
  lookup: async () => ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 })),
}));

const GATEWAY = "infra/shared";
const PATIENT = { timeout: 20_000, interval: 20 };
const pair = selfSigned(["localhost"]);
const cleanups: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function listener(name: string): PlanItem {
  return {
    type: "listener",
    id: `listener:${name}`,
    gateway: GATEWAY,
    port: "port",
    owner: { kind: "ListenerSet", namespace: "team", name },
    section: "http",
    hostname: `${name}.example.com`,
    protocol: "HTTP",
  };
}

interface Controller {
  readonly server: PublishingServer;
  readonly port: number;
  readonly told: ItemReport[];
}

async function controller(address: string, at: number): Promise<Controller> {
  const server = new PublishingServer({
    features: new Set(),
    certificate: pair.cert,
    key: pair.key,
    address,
    port: at,
    authorize: async () => true,
  });
  cleanups.push(() => server.close());
  const told: ItemReport[] = [];
  server.onReport((reports) => told.push(...reports));
  return { server, port: await server.listen(), told };
}

async function pod(port: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "mergeway-early-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  let handler: (reports: readonly ItemReport[]) => void = () => {};
  const dataPlane: DataPlane = {
    features: new Set(),
    apply: ({ upserts }) => handler(upserts.map(({ id }) => ({ id, state: "programmed" }))),
    onReport: (given) => {
      handler = given;
    },
    close: async () => {},
  };
  const stopping = new AbortController();
  const running = runPlanClient(
    {
      controller: `localhost:${port}`,
      authority: pair.cert,
      gateway: GATEWAY,
      pod: "pod",
      token: async () => "token",
      journal: await PlanJournal.open(directory),
      dataPlane,
    },
    stopping.signal,
  );
  cleanups.push(async () => {
    stopping.abort();
    await running;
  });
}

test("a report that reaches a controller before its item counts when the item arrives", async () => {
  const first = await controller("127.0.0.1", 0);
  const second = await controller("127.0.0.2", first.port);
  const both = [first, second];
  for (const { server } of both) server.apply({ upserts: [listener("known")], removes: [] });
  await pod(first.port);
  const known: ItemReport = { id: "listener:known", state: "programmed" };
  await expect.poll(() => both.map(({ told }) => told), PATIENT).toEqual([[known], [known]]);
  const feeder = both.findIndex(({ server }) => server.lags.length === 1);
  const [ahead, behind] = feeder === 0 ? both : both.toReversed();
  ahead?.server.apply({ upserts: [listener("early")], removes: [] });
  const early: ItemReport = { id: "listener:early", state: "programmed" };
  await expect.poll(() => ahead?.told, PATIENT).toEqual([known, early]);
  // The pod serves both controllers' streams in order: what it says next has come after that
  // report.
  await expect.poll(() => behind?.server.confirmed.get(GATEWAY)?.replicas, PATIENT).toBe(1);
  behind?.server.apply({ upserts: [listener("early")], removes: [] });
  await expect.poll(() => behind?.told, PATIENT).toEqual([known, early]);
});
