/** The process of a data plane pod: receives the plan and programs the data plane. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runPlanClient } from "../dataplanes/remote/subscriber/plan-client.ts";
import { PlanJournal } from "../dataplanes/remote/subscriber/plan-journal.ts";
import { watchPlan } from "../dataplanes/telemetry/watch-plan.ts";
import type { PlanDelta } from "../plan/plan.ts";
import { openPodAdmin, type PodAdmin } from "./admin.ts";
import type { PodMetrics } from "./metrics.ts";
import type { PodPlane } from "./pod-plane.ts";
import { openProbes } from "./probes.ts";

export interface PodOptions {
  readonly controller: string;
  readonly gateway: string;
  readonly pod: string;
  /** PEM. */
  readonly authority: string;
  readonly tokenFile: string;
  readonly stateDirectory: string;
  readonly adminAddress: string;
  /** Threads that serve; 0: the main thread does. */
  readonly workers: number;
  /** What the kubelet shows when it asks the pod to drain; empty: it never does. */
  readonly drainToken: string;
  /** Absent: nothing is counted. */
  readonly metrics?: PodMetrics | undefined;
  /** Called with everything that the data plane is given, before it is. */
  readonly onPlan: (delta: PlanDelta) => void;
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
  const admin = await openAdmin(options, {
    isStarted: () => hasPlan,
    isReady: () => hasPlan && plane.isReady,
    ...(options.metrics === undefined ? {} : { metrics: options.metrics.exposition }),
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
      dataPlane: watchPlan(plane.dataPlane, (delta) => {
        options.metrics?.look(delta);
        options.onPlan(delta);
      }),
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

/** Whoever serves answers the probes, so that a pod is ready while it serves. */
function openAdmin(
  { adminAddress, workers, stateDirectory }: PodOptions,
  admin: PodAdmin,
): Promise<Closable> {
  if (workers === 0) return openPodAdmin(adminAddress, admin);
  return openProbes(adminAddress, admin, join(stateDirectory, "admin.sock"));
}

interface Closable {
  close(): void;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
