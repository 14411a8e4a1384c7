/** What team zest of the example sees of a cluster: its own namespace, as its statuses tell it. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Metrics } from "../../src/admin/metrics/metrics.ts";
import { startAdmin } from "../../src/admin/server/admin-server.ts";
import { partsOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { openManifests } from "../../src/cli/workspace/workspace.ts";
import { RoutingTable } from "../../src/matching/routing-table.ts";
import { renderStatus } from "../../src/status/render.ts";
import { readingScope } from "../../src/view/written/reading-scope.ts";
import { writtenState } from "../../src/view/written/written-state.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NAMESPACE = "team-zest";

export async function startTeamView(): Promise<{ readonly url: string; end(): Promise<void> }> {
  const { resources, engine, settings } = await openManifests([join(ROOT, "examples/two-teams")]);
  const { controllerName } = settings;
  const own = [...resources].filter(([key]) => partsOf(key).namespace === NAMESPACE);
  const written = own.map(([key, resource]): [string, Resource] => {
    const verdict = engine.verdict(key);
    if (verdict === undefined) return [key, resource];
    // Generations count from 1 in a cluster; here neither side has one.
    const status = renderStatus(resource, verdict, { controllerName, now: "2026-06-01T00:00:00Z" });
    const metadata = { ...resource.metadata, generation: verdict.generation };
    return [key, { ...resource, metadata, status } as Resource];
  });
  const state = writtenState({ resources: new Map(written), controllerName });
  const admin = await startAdmin(
    {
      version: "0",
      table: new RoutingTable(),
      scope: readingScope([NAMESPACE], ["secrets"]),
      state: () => state,
      isReady: () => true,
      onChanges: () => () => undefined,
    },
    { address: "127.0.0.1", port: 0, metrics: new Metrics("0") },
  );
  return { url: admin.url, end: () => admin.close() };
}
