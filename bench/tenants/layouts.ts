/**
 * The two sides: an Envoy with Mergeway's layout, and one with a filter chain per hostname. Both
 * take the same plan.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEnvoyDataPlane } from "../../src/dataplanes/envoy/envoy-data-plane.ts";
import type { PlanDelta } from "../../src/plan/plan.ts";
import { envoyBinary } from "../../test/dataplanes/support/envoy-binary.ts";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import { ChainLayout } from "./chain-layout.ts";
import { GATEWAY, startEnvoy, supervision } from "./own-envoy.ts";
import { PlainAds } from "./plain-ads.ts";

export type LayoutName = "Mergeway" | "chain per hostname";

export interface Layout {
  readonly name: LayoutName;
  /** Where HTTPS is served. */
  readonly port: number;
  readonly pid: number;
  apply(delta: PlanDelta): void;
  close(): Promise<void>;
}

export async function startMergeway(plan: PlanDelta): Promise<Layout> {
  const ports = new Map([
    [80, await lastingPort()],
    [443, await lastingPort()],
  ]);
  const plane = createEnvoyDataPlane({
    bind: { address: "127.0.0.1", portMap: (port) => ports.get(port) ?? port },
    supervise: { binary: envoyBinary(), ...supervision },
  });
  plane.apply(plan);
  const pid = plane.process(GATEWAY)?.pid;
  if (pid === undefined) throw new Error("Envoy has not started");
  return {
    name: "Mergeway",
    port: ports.get(443) as number,
    pid,
    apply: (delta) => plane.apply(delta),
    close: () => plane.close({ graceMs: 0 }),
  };
}

export async function startChains(plan: PlanDelta): Promise<Layout> {
  const directory = mkdtempSync(join(tmpdir(), "mergeway-bench-"));
  const serverPath = join(directory, "ads");
  const port = await lastingPort();
  const ads = new PlainAds();
  await ads.listen(serverPath);
  const layout = new ChainLayout(ads, port);
  layout.apply(plan);
  const { envoy, pid } = startEnvoy({ name: "chains", directory, serverPath });
  return {
    name: "chain per hostname",
    port,
    pid,
    apply: (delta) => {
      layout.apply(delta);
      const [refusal] = ads.refusals;
      if (refusal !== undefined) throw new Error(`the comparison is not one: Envoy refuses ${refusal}`);
    },
    close: async () => {
      await envoy.close(0);
      ads.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
