/**
 * The pod's end of the stream: keeps a data plane fed. It serves what it last knew from the first moment, and never takes anything away because controllers are
 * away. It speaks to every replica of the controller, takes items from one of them, and turns to another when that one is lost.
 */
import { lookup } from "node:dns/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ItemId, PlanItem } from "../../plan/plan.ts";
import type { DataPlane, ItemReport } from "../dataplane.ts";
import { ControllerLink } from "./controller-link.ts";
import type { PlanJournal } from "./plan-journal.ts";
import { type ControllerMessage, decodeItem, digestOf } from "./protocol.ts";

export interface PlanClientOptions {
  /** `host:port`; every address of the host is a replica of the controller. */
  readonly controller: string;
  readonly authority: string;
  readonly gateway: string;
  readonly pod: string;
  /** Read for every connection: tokens rotate. */
  readonly token: () => Promise<string>;
  readonly journal: PlanJournal;
  readonly dataPlane: DataPlane;
  readonly onState?: (state: "connected" | "synced" | "disconnected", detail: string) => void;
}

const RESOLVE_MS = 5_000;

/** Runs until the signal is aborted. */
export async function runPlanClient(options: PlanClientOptions, signal: AbortSignal): Promise<void> {
  const client = new PlanClient(options, signal);
  while (!signal.aborted) {
    client.meet(await addressesOf(options.controller));
    await sleep(RESOLVE_MS, undefined, { signal }).catch(() => {});
  }
  client.close();
  await options.journal.flushed();
}

class PlanClient {
  readonly #options: PlanClientOptions;
  readonly #signal: AbortSignal;
  readonly #links: Map<string, ControllerLink> = new Map();
  readonly #reports: Map<ItemId, ItemReport> = new Map();
  /** The replica that items come from. */
  #source: ControllerLink | undefined;
  /** The last state that was named whole, and by whom. */
  #named: { readonly state: number; readonly by: ControllerLink } | undefined;
  /** What the data plane serves. */
  #holds: string | undefined;
  #isWaiting = false;
  #isNews = false;

  constructor(options: PlanClientOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    options.dataPlane.onReport((changed) => {
      for (const report of changed) this.#reports.set(report.id, report);
      for (const link of this.#links.values()) link.send({ type: "report", reports: changed });
    });
    options.dataPlane.apply({ upserts: [...options.journal.items.values()].map(decodeItem), removes: [] });
    if (options.journal.items.size > 0) void this.#confirm();
  }

  /** Opens links to replicas that are new and closes those to replicas that are gone. An empty answer changes nothing: DNS may be away, too. */
  meet(addresses: readonly string[]): void {
    if (addresses.length === 0) return;
    for (const [address, link] of this.#links) {
      if (addresses.includes(address)) continue;
      link.close();
      this.#links.delete(address);
      // One that we have left says nothing any more, not even that it has gone.
      if (this.#source === link) this.#source = undefined;
    }
    for (const address of addresses)
      if (!this.#links.has(address)) this.#links.set(address, this.#open(address));
    this.#choose();
  }

  close(): void {
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }

  #open(address: string): ControllerLink {
    const { controller, authority, gateway, pod, token, onState } = this.#options;
    const link: ControllerLink = new ControllerLink(
      { address, controller, authority, gateway, pod, token },
      {
        onOpen: () => {
          onState?.("connected", address);
          const holds = this.#holds === undefined ? {} : { holds: this.#holds };
          link.send({ type: "report", reports: [...this.#reports.values()], ...holds });
          this.#choose();
        },
        onMessage: (message) => this.#take(message, link),
        onClose: (reason) => {
          onState?.("disconnected", `${address}: ${reason}`);
          if (this.#source !== link) return;
          this.#source = undefined;
          this.#choose();
        },
      },
      this.#signal,
    );
    return link;
  }

  #choose(): void {
    if (this.#source !== undefined || this.#signal.aborted) return;
    const link = [...this.#links.values()].find((candidate) => candidate.isOpen);
    if (link === undefined) return;
    this.#source = link;
    const have = Object.fromEntries(
      [...this.#options.journal.items].map(([id, text]) => [id, digestOf(text)]),
    );
    link.send({ type: "serve", have });
  }

  #take({ upserts, removes, synced, state }: ControllerMessage, from: ControllerLink): void {
    if (from !== this.#source) return;
    const { dataPlane, journal, onState } = this.#options;
    const encoded = new Map<ItemId, string>();
    const items: PlanItem[] = upserts.map((text) => {
      const item = decodeItem(text);
      encoded.set(item.id, text);
      return item;
    });
    for (const id of removes) this.#reports.delete(id);
    dataPlane.apply({ upserts: items, removes });
    this.#repeat(items);
    journal.record(encoded, removes);
    if (state !== undefined) {
      this.#named = { state, by: from };
      void this.#confirm();
    }
    if (synced) onState?.("synced", from.address);
  }

  /** Tells what is served as soon as it is. One wait at a time: what comes meanwhile is waited for after it, all at once. */
  async #confirm(): Promise<void> {
    this.#isNews = true;
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    while (this.#isNews) {
      this.#isNews = false;
      const { digest } = this.#options.journal;
      const named = this.#named;
      if ((await this.#options.dataPlane.served?.()) === false) return;
      this.#holds = digest;
      for (const link of this.#links.values()) link.send({ type: "report", reports: [], holds: digest });
      if (named !== undefined && named.by === this.#source)
        named.by.send({ type: "acknowledge", state: named.state });
    }
    this.#isWaiting = false;
  }

  /** An item may have gone and come again between two messages: the data plane sees no change, but the controllers have forgotten its fate. */
  #repeat(items: readonly PlanItem[]): void {
    const reports = items.flatMap(({ id }) => this.#reports.get(id) ?? []);
    if (reports.length > 0) for (const link of this.#links.values()) link.send({ type: "report", reports });
  }
}

async function addressesOf(controller: string): Promise<readonly string[]> {
  const host = controller.slice(0, controller.lastIndexOf(":"));
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}
