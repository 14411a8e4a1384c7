/**
 * The client of the plan stream in a pod: keeps a connection to every replica of the controller.
 */
import { lookup } from "node:dns/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ControllerLink, type LinkTarget } from "./controller-link.ts";
import type { PlanJournal } from "./plan-journal.ts";
import { type LinkEvents, PlanSubscriber, type PlanSubscriberOptions } from "./plan-subscriber.ts";

export interface PlanClientOptions
  extends Omit<LinkTarget, "address">,
    Omit<PlanSubscriberOptions, "journal" | "openLink"> {
  readonly journal: PlanJournal;
}

const BEAT_MS = 5_000;
/** A lost replica is replaced soon, and statuses of new objects may wait for the new one. */
const SEARCH_BEAT_MS = 1_000;
const SEARCH_MS = 30_000;

/** Runs until the signal is aborted. Every address of the controller's DNS name is one replica. */
export async function runPlanClient(options: PlanClientOptions, signal: AbortSignal): Promise<void> {
  let searchUntil = 0;
  let wake = new AbortController();
  const search = (): void => {
    searchUntil = performance.now() + SEARCH_MS;
    wake.abort();
  };
  const subscriber = new PlanSubscriber({
    ...options,
    openLink: (address, events) =>
      new ControllerLink({ ...options, address }, whenLost(events, search), signal),
  });
  while (!signal.aborted) {
    subscriber.meet(await addressesOf(options.controller));
    subscriber.beat();
    const isSearching = performance.now() < searchUntil;
    if (!isSearching) wake = new AbortController();
    const woken = isSearching ? signal : AbortSignal.any([signal, wake.signal]);
    await sleep(isSearching ? SEARCH_BEAT_MS : BEAT_MS, undefined, { signal: woken }).catch(() => {});
  }
  subscriber.close();
  await options.journal.flushed();
}

/** Not for attempts that fail: an address may be gone for good. */
function whenLost(events: LinkEvents, lost: () => void): LinkEvents {
  let isOpen = false;
  return {
    onOpen() {
      isOpen = true;
      events.onOpen();
    },
    onMessage: (message) => events.onMessage(message),
    onClose(reason) {
      if (isOpen) lost();
      isOpen = false;
      events.onClose(reason);
    },
  };
}

async function addressesOf(controller: string): Promise<readonly string[]> {
  const host = controller.slice(0, controller.lastIndexOf(":"));
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}
