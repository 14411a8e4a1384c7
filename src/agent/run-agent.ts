/** The process of a data plane pod: receives the plan and programs the data plane. */
import { readFile } from "node:fs/promises";
import { runPlanClient } from "../dataplanes/remote/subscriber/plan-client.ts";
import { PlanJournal } from "../dataplanes/remote/subscriber/plan-journal.ts";
import { openPodAdmin } from "./admin.ts";
import type { PodPlane } from "./pod-plane.ts";

export interface PodOptions {
  readonly controller: string;
  readonly gateway: string;
  readonly pod: string;
  /** PEM. */
  readonly authority: string;
  readonly tokenFile: string;
  readonly stateDirectory: string;
  readonly adminAddress: string;
  /** What the kubelet shows when it asks the pod to drain; empty: it never does. */
  readonly drainToken: string;
  readonly log: (level: "info" | "warn" | "error", message: string) => void;
}

export async function runDataPlanePod(
  options: PodOptions,
  plane: PodPlane,
  signal: AbortSignal,
): Promise<void> {
  const { log } = options;
  const journal = await PlanJournal.open(options.stateDirectory);
  let hasPlan = false;
  const begin = (): void => {
    if (hasPlan) return;
    hasPlan = true;
    plane.begin();
  };
  const admin = await openPodAdmin(options.adminAddress, {
    isStarted: () => hasPlan,
    isReady: () => hasPlan && plane.isReady,
    ...(plane.drain === undefined
      ? {}
      : { drain: { token: options.drainToken, run: () => plane.drain?.() ?? Promise.resolve() } }),
  });
  const stopStream = new AbortController();
  const stream = runPlanClient(
    {
      controller: options.controller,
      authority: options.authority,
      gateway: options.gateway,
      pod: options.pod,
      token: async () => (await readFile(options.tokenFile, "utf8")).trim(),
      journal,
      dataPlane: plane.dataPlane,
      onState: (state, detail) => {
        if (state === "synced") begin();
        log(state === "disconnected" ? "warn" : "info", `${state}: ${detail}`);
      },
    },
    stopStream.signal,
  );
  // A plan from before the restart is good enough to serve with.
  if (journal.digests.size > 0) begin();
  await aborted(signal);
  log("info", "stopping");
  await plane.close();
  stopStream.abort();
  await stream;
  admin.close();
  log("info", "stopped");
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
