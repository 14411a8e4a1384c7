/**
 * The client of the plan stream in a pod: keeps a connection to every replica of the controller.
 */
import { lookup } from "node:dns/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ControllerLink, type LinkTarget } from "./controller-link.ts";
import type { PlanJournal } from "./plan-journal.ts";
import { PlanSubscriber, type PlanSubscriberOptions } from "./plan-subscriber.ts";

export interface PlanClientOptions
  extends Omit<LinkTarget, "address">,
    Omit<PlanSubscriberOptions, "journal" | "openLink"> {
  readonly journal: PlanJournal;
}

const BEAT_MS = 5_000;

/** Runs until the signal is aborted. Every address of the controller's DNS name is one replica. */
export async function runPlanClient(options: PlanClientOptions, signal: AbortSignal): Promise<void> {
  const subscriber = new PlanSubscriber({
    ...options,
    openLink: (address, events) => new ControllerLink({ ...options, address }, events, signal),
  });
  while (!signal.aborted) {
    subscriber.meet(await addressesOf(options.controller));
    subscriber.beat();
    await sleep(BEAT_MS, undefined, { signal }).catch(() => {});
  }
  subscriber.close();
  await options.journal.flushed();
}

async function addressesOf(controller: string): Promise<readonly string[]> {
  const host = controller.slice(0, controller.lastIndexOf(":"));
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}
