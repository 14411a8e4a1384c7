/** A data plane pod: the embedded data plane, fed by the controller's stream. */
import { readFile } from "node:fs/promises";
import { createEmbeddedDataPlane } from "../dataplanes/embedded/embedded-data-plane.ts";
import { runPlanClient } from "../dataplanes/remote/plan-client.ts";
import { PlanJournal } from "../dataplanes/remote/plan-journal.ts";
import type { RequestRecord } from "../dataplanes/request-record.ts";
import { openHealthServer } from "./health.ts";

export interface PodOptions {
  readonly controller: string;
  readonly gateway: string;
  readonly pod: string;
  /** PEM. */
  readonly authority: string;
  readonly tokenFile: string;
  readonly stateDirectory: string;
  readonly adminAddress: string;
  readonly workers: number;
  readonly drainSeconds: number;
  readonly log: (level: "info" | "warn" | "error", message: string) => void;
  readonly onRequestEnd?: (record: RequestRecord) => void;
}

/** Time for a pod's endpoint to leave every Service before the pod stops accepting. */
const LEAVE_MS = 3_000;

export async function runDataPlanePod(options: PodOptions, signal: AbortSignal): Promise<void> {
  const { log } = options;
  const journal = await PlanJournal.open(options.stateDirectory);
  const dataPlane = createEmbeddedDataPlane({
    bind: { address: "::" },
    workers: options.workers,
    ...(options.onRequestEnd === undefined ? {} : { onRequestEnd: options.onRequestEnd }),
  });
  // A plan from before the restart is good enough to serve with.
  const readiness = { synced: journal.items.size > 0, leaving: false };
  const health = await openHealthServer(options.adminAddress, () => readiness.synced && !readiness.leaving);
  const stopStream = new AbortController();
  const stream = runPlanClient(
    {
      controller: options.controller,
      authority: options.authority,
      gateway: options.gateway,
      pod: options.pod,
      token: async () => (await readFile(options.tokenFile, "utf8")).trim(),
      journal,
      dataPlane,
      onState: (state, detail) => {
        if (state === "synced") readiness.synced = true;
        log(state === "disconnected" ? "warn" : "info", `${state}: ${detail}`);
      },
    },
    stopStream.signal,
  );
  await aborted(signal);
  readiness.leaving = true;
  log("info", "leaving: no new connections are expected, those in flight may finish");
  await new Promise((resolve) => setTimeout(resolve, LEAVE_MS));
  await dataPlane.close({ graceMs: options.drainSeconds * 1000 });
  stopStream.abort();
  await stream;
  health.close();
  log("info", "stopped");
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
