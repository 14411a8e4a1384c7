/** 2,500 sets with 40,000 routes behind an admin server; a tenth of it in the short form. */

import { makeEngine } from "../../bench/engine/engine.ts";
import { SCALES, world } from "../../bench/engine/world.ts";
import { Metrics } from "../../src/admin/metrics/metrics.ts";
import { startAdmin } from "../../src/admin/server/admin-server.ts";
import type { Key } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { RoutingTable } from "../../src/matching/routing-table.ts";
import { buildState } from "../../src/view/build-state.ts";
import { SuiteFailure } from "../suite.ts";

export async function startLargeWorld(
  isShort: boolean,
): Promise<{ readonly url: string; end(): Promise<void> }> {
  const scale = SCALES.find(({ name }) => name === (isShort ? "a tenth" : "full"));
  if (scale === undefined) throw new SuiteFailure("bench/engine has no such world");
  const engine = makeEngine();
  const changes = [...world(scale)];
  engine.apply(changes);
  const resources = new Map<Key, Resource>();
  for (const { key, resource } of changes) if (resource !== undefined) resources.set(key, resource);
  const table = new RoutingTable();
  table.apply({ upserts: [...engine.plan()], removes: [] });
  const state = buildState({ engine, resources });
  const admin = await startAdmin(
    { version: "0", table, state: () => state, isReady: () => true, onChanges: () => () => undefined },
    { address: "127.0.0.1", port: 0, metrics: new Metrics("0") },
  );
  return { url: admin.url, end: () => admin.close() };
}
