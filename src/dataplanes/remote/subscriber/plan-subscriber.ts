/**
 * The pod's side of the plan stream: applies the plan to the data plane, and reports to every
 * controller. It starts with the plan of its journal, and removes nothing while no controller is
 * connected. It is connected to every replica of the controller and takes items from one of them.
 * It changes to another one when that connection is lost, or when the leader offers its plan.
 * plan-client.ts opens the streams.
 */
import type { ItemReport } from "../../../plan/item-report.ts";
import type { ItemId, PlanItem } from "../../../plan/plan.ts";
import type { DataPlane } from "../../dataplane.ts";
import {
  type ControllerMessage,
  type DeltaMessage,
  decodeItem,
  type PodMessage,
  type ReportMessage,
  type VersionReport,
} from "../protocol/protocol.ts";
import { ReportState } from "../protocol/report-state.ts";
import { soundReports } from "../protocol/sound-reports.ts";

export interface PlanSubscriberOptions {
  readonly journal: Journal;
  readonly dataPlane: DataPlane;
  readonly openLink: (address: string, events: LinkEvents) => PlanLink;
  readonly onState?: (state: "connected" | "synced" | "disconnected", detail: string) => void;
}

/** The last good plan, kept over restarts. */
export interface Journal {
  /** The digest of each item (`digestOf`), by id. */
  readonly digests: ReadonlyMap<ItemId, string>;
  /** The digest of all items (plan-digest.ts). */
  readonly digest: string;
  /** The encoded items from before the restart. Call it once, before the first `record`. */
  takeSaved(): Iterable<string>;
  record(upserts: ReadonlyMap<ItemId, string>, removes: readonly ItemId[]): void;
}

/** A connection to one replica of the controller, which is opened again whenever it is lost. */
export interface PlanLink {
  readonly address: string;
  readonly isOpen: boolean;
  /** The protocol version of the controller, while the link is open. */
  readonly protocol: number;
  /** Drops the message while the link is closed: everything is sent again when it opens. */
  send(message: PodMessage): void;
  /** Ends the stream, and opens another. */
  reset(): void;
  close(): void;
}

export interface LinkEvents {
  onOpen(): void;
  onMessage(message: ControllerMessage): void;
  onClose(reason: string): void;
}

/** What has changed since the last report message. */
interface News {
  readonly reports?: readonly VersionReport[];
  readonly forgets?: readonly ItemId[];
}

const REPORTS_PER_MESSAGE = 2_000;
/**
 * A controller of protocol 1 cannot ask for missing reports. Every so many beats all of them are
 * sent to it again.
 */
const BEATS_PER_REPETITION = 6;

export class PlanSubscriber {
  readonly #options: PlanSubscriberOptions;
  readonly #links: Map<string, PlanLink> = new Map();
  readonly #reports: ReportState = new ReportState();
  /** The controller that items are taken from. */
  #source: PlanLink | undefined;
  /** The release of the controller that sent the last items. */
  #release: string | undefined;
  /** The number of the last complete state, and the link that it came from. */
  #named: { readonly state: number; readonly by: PlanLink } | undefined;
  /** The digest of what the data plane serves. */
  #holds: string | undefined;
  #isWaiting = false;
  #isNews = false;
  #beats = 0;
  #isClosed = false;

  constructor(options: PlanSubscriberOptions) {
    this.#options = options;
    options.dataPlane.onReport((changed) => this.#heard(changed));
    options.dataPlane.apply({ upserts: Array.from(options.journal.takeSaved(), decodeItem), removes: [] });
    if (options.journal.digests.size > 0) void this.#confirm();
  }

  /**
   * Opens links to new replicas and closes those to replicas that are gone. An empty list changes
   * nothing: DNS may be unavailable.
   */
  meet(addresses: readonly string[]): void {
    if (addresses.length === 0) return;
    for (const [address, link] of this.#links) {
      if (addresses.includes(address)) continue;
      link.close();
      this.#links.delete(address);
      // A link that is closed by us calls no events, not even `onClose`.
      if (this.#source === link) this.#source = undefined;
    }
    for (const address of addresses)
      if (!this.#links.has(address)) this.#links.set(address, this.#open(address));
    this.#choose();
  }

  /**
   * Sends the current digests to every controller, changed or not; to be called every few seconds.
   * A controller whose digests differ asks for all reports.
   */
  beat(): void {
    this.#beats++;
    for (const link of this.#links.values()) {
      if (!link.isOpen) continue;
      if (link.protocol < 2 && this.#beats % BEATS_PER_REPETITION === 0) this.#tellAll(link);
      else link.send(this.#reportMessage({}));
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }

  #open(address: string): PlanLink {
    const { openLink, onState } = this.#options;
    const link: PlanLink = openLink(address, {
      onOpen: () => {
        onState?.("connected", address);
        this.#tellAll(link);
        this.#choose();
      },
      onMessage: (message) => this.#take(message, link),
      onClose: (reason) => {
        onState?.("disconnected", `${address}: ${reason}`);
        if (this.#source !== link) return;
        this.#source = undefined;
        this.#choose();
      },
    });
    return link;
  }

  #choose(): void {
    if (this.#source !== undefined || this.#isClosed) return;
    const link = [...this.#links.values()].find((candidate) => candidate.isOpen);
    if (link !== undefined) this.#subscribe(link);
  }

  #subscribe(link: PlanLink): void {
    this.#source = link;
    link.send({ type: "serve", have: Object.fromEntries(this.#options.journal.digests) });
  }

  #take(message: ControllerMessage, from: PlanLink): void {
    switch (message.type) {
      case "delta":
        if (from === this.#source) this.#apply(message, from);
        return;
      case "tell":
        this.#tellAll(from);
        return;
      case "offer":
        this.#turnTo(from);
        return;
      default:
        // A message of a later protocol.
        return;
    }
  }

  #apply({ upserts, removes, synced, state, release }: DeltaMessage, from: PlanLink): void {
    const { dataPlane, journal, onState } = this.#options;
    const encoded = new Map<ItemId, string>();
    const items: PlanItem[] = upserts.map((text) => {
      const item = decodeItem(text);
      encoded.set(item.id, text);
      return item;
    });
    this.#release = release;
    // Record before apply: reports carry the version that the journal has.
    journal.record(encoded, removes);
    for (const id of removes) this.#reports.delete(id);
    dataPlane.apply({ upserts: items, removes });
    if (removes.length > 0) this.#tell({ forgets: removes });
    this.#repeat(items);
    if (state !== undefined) {
      this.#named = { state, by: from };
      void this.#confirm();
    }
    if (synced) onState?.("synced", from.address);
  }

  /**
   * Takes items from another controller from now on. The stream to the former one is reset, because
   * that controller would go on sending items.
   */
  #turnTo(link: PlanLink): void {
    const before = this.#source;
    if (before === link || !link.isOpen) return;
    this.#subscribe(link);
    before?.reset();
  }

  /**
   * Reports and acknowledges the plan as soon as the data plane serves it. There is one wait at a
   * time. Changes that come meanwhile are confirmed together by the next wait.
   */
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
      this.#tell({});
      if (named !== undefined && named.by === this.#source)
        named.by.send({ type: "acknowledge", state: named.state });
    }
    this.#isWaiting = false;
  }

  /** Passes on the data plane's reports, each with the version of the item. */
  #heard(changed: readonly ItemReport[]): void {
    const { digests } = this.#options.journal;
    const reports = soundReports(changed).flatMap((report): VersionReport[] => {
      const of = digests.get(report.id);
      return of === undefined ? [] : [{ ...report, of }];
    });
    for (const report of reports) this.#reports.set(report);
    if (reports.length > 0) this.#tell({ reports });
  }

  #tell(news: News): void {
    const message = this.#reportMessage(news);
    for (const link of this.#links.values()) link.send(message);
  }

  /** Sends all reports in messages of limited size. The last one has the digest of all. */
  #tellAll(link: PlanLink): void {
    const all = this.#reports.all();
    const parts = Math.max(1, Math.ceil(all.length / REPORTS_PER_MESSAGE));
    for (let part = 0; part < parts; part++) {
      const reports = all.slice(part * REPORTS_PER_MESSAGE, (part + 1) * REPORTS_PER_MESSAGE);
      const whole = part === 0 ? ({ whole: true } as const) : {};
      if (part === parts - 1) link.send({ ...this.#reportMessage({ reports }), ...whole });
      else link.send({ type: "report", reports, ...whole });
    }
  }

  #reportMessage({ reports = [], forgets }: News): ReportMessage {
    return {
      type: "report",
      reports,
      ...(forgets === undefined ? {} : { forgets }),
      ...(this.#holds === undefined ? {} : { holds: this.#holds }),
      ...(this.#release === undefined ? {} : { release: this.#release }),
      told: this.#reports.digest,
    };
  }

  /**
   * Repeats the reports on these items to controllers of protocol 1. Such a controller forgets the
   * report on an item that is removed, and the item may be removed and added between two messages.
   */
  #repeat(items: readonly PlanItem[]): void {
    const links = [...this.#links.values()].filter(({ isOpen, protocol }) => isOpen && protocol < 2);
    if (links.length === 0) return;
    const reports = items.flatMap(({ id }) => this.#reports.get(id) ?? []);
    if (reports.length > 0) for (const link of links) link.send({ type: "report", reports });
  }
}
