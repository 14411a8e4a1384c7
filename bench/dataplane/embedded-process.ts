/**
 * The embedded data plane in a process of its own, one thread, with metrics as `mergeway run` has
 * them.
 */

import { monitorEventLoopDelay } from "node:perf_hooks";
import { Metrics } from "../../src/admin/metrics/metrics.ts";
import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import { planOf, tenantItems, type World } from "./world.ts";

export interface EmbeddedSetup {
  readonly world: World;
  readonly http: number;
  readonly tls: number;
}

/** `churn`: take tenants out and in again, one every so many milliseconds; 0 stops. */
export type ToEmbedded =
  | { readonly type: "reset" | "pauses" }
  | { readonly type: "churn"; readonly everyMs: number };

export interface Pauses {
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

const { world, http, tls } = JSON.parse(process.argv[2] ?? "") as EmbeddedSetup;
const metrics = new Metrics("bench");
const plane = createEmbeddedDataPlane({
  bind: { address: "127.0.0.1", portMap: (port) => (port === 80 ? http : tls) },
  workers: 0,
  traffic: metrics.traffic,
});
const delays = monitorEventLoopDelay({ resolution: 1 });

const began = performance.now();
plane.apply({ upserts: planOf(world), removes: [] });
const loadingMs = performance.now() - began;

// Every listener's status is known when the last certificate has been checked.
let awaited = world.tenants * 3 + 2;
plane.onReport((reports) => {
  if (awaited > 0 && reports.length >= awaited) process.send?.({ ready: true, loadingMs });
  awaited -= reports.length;
});

let churning: NodeJS.Timeout | undefined;

process.on("message", (message: ToEmbedded) => {
  if (message.type === "reset") {
    delays.enable();
    delays.reset();
  } else if (message.type === "churn") churn(message.everyMs);
  else {
    delays.disable();
    const [median, p99, max] = [delays.percentile(50), delays.percentile(99), delays.max];
    process.send?.({ median: median / 1e6, p99: p99 / 1e6, max: max / 1e6 } satisfies Pauses);
  }
});
process.once("disconnect", () => process.exit());
// An orderly exit, so that a profile is written.
process.once("SIGTERM", () => process.exit());

function churn(everyMs: number): void {
  clearInterval(churning);
  if (everyMs === 0) return;
  let turn = 0;
  churning = setInterval(() => {
    const items = tenantItems(world, world.tenants - 1 - (turn++ % 100));
    plane.apply({ upserts: [], removes: items.map(({ id }) => id) });
    plane.apply({ upserts: items, removes: [] });
  }, everyMs);
}
