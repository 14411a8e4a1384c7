/**
 * A controller's address leaves DNS while its connection still stands: found on a cluster, where a
 * pod then waited for ever for a plan from nobody.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import type { DataPlane } from "../../../../src/dataplanes/dataplane.ts";
import { runPlanClient } from "../../../../src/dataplanes/remote/subscriber/plan-client.ts";
import { PlanJournal } from "../../../../src/dataplanes/remote/subscriber/plan-journal.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";
import { selfSigned } from "../../support/certificates.ts";
import { PublishingServer } from "../publishing-server.ts";

const dns = vi.hoisted(() => ({ addresses: ["127.0.0.1"] }));
vi.mock("node:dns/promises", () => ({
  lookup: async () => dns.addresses.map((address) => ({ address, family: 4 })),
}));

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function controller(
  address: string,
  port: number,
  pair: { cert: string; key: string },
): Promise<PublishingServer> {
  const server = new PublishingServer({
    features: new Set(),
    certificate: pair.cert,
    key: pair.key,
    address,
    port,
    authorize: async () => true,
  });
  cleanups.push(() => server.close());
  return server;
}

test("a pod takes its plan from the remaining replica", async () => {
  const pair = selfSigned(["localhost"]);
  const first = await controller("127.0.0.1", 0, pair);
  const port = await first.listen();
  const second = await controller("127.0.0.2", port, pair);
  await second.listen();
  const directory = mkdtempSync(join(tmpdir(), "mergeway-left-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const seen = new Set<string>();
  const dataPlane: DataPlane = {
    features: new Set(),
    apply: ({ upserts }) => {
      for (const { id } of upserts) seen.add(id);
    },
    onReport: () => {},
    close: async () => {},
  };
  const stop = new AbortController();
  const running = runPlanClient(
    {
      controller: `localhost:${port}`,
      authority: pair.cert,
      gateway: "infra/shared",
      pod: "pod",
      token: async () => "token",
      journal: await PlanJournal.open(directory),
      dataPlane,
    },
    stop.signal,
  );
  cleanups.push(async () => {
    stop.abort();
    await running;
  });
  const item = (id: string): PlanItem => ({ type: "gateway", id, gateway: "infra/shared" }) as PlanItem;
  first.apply({ upserts: [item("one")], removes: [] });
  await expect.poll(() => seen.has("one"), { timeout: 20_000 }).toBe(true);
  dns.addresses = ["127.0.0.2"];
  second.apply({ upserts: [item("one"), item("two")], removes: [] });
  await expect.poll(() => seen.has("two"), { timeout: 20_000 }).toBe(true);
});
