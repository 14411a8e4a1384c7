/**
 * The pod's part in the stream: keeps a data plane fed, and every controller informed. It serves
 * what it last knew from the first moment, and never takes anything away because controllers are
 * away. It speaks to every replica of the controller, takes items from one of them, and turns to
 * another when that one is lost, or when the leader offers a plan that this one does not have. How
 * streams are opened is somebody else's business (plan-client.ts).
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
  readonly openLink: (address: string, events: LinkEvents) => Link;
  readonly onState?: (state: "connected" | "synced" | "disconnected", detail: string) => void;
}

/** The last good plan, kept over restarts. */
export interface Journal {
  /** Of each item, by id (`digestOf`). */
  readonly digests: ReadonlyMap<ItemId, string>;
  /** Of all items. */
  readonly digest: string;
  /** The encoded items of before the restart. To be asked for once, before anything is recorded. */
  takeSaved(): Iterable<string>;
  record(upserts: ReadonlyMap<ItemId, string>, removes: readonly ItemId[]): void;
}

/**
 * A lasting connection to one replica of the controller, which is opened again whenever it is lost.
 */
export interface Link {
  readonly address: string;
  readonly isOpen: boolean;
  /** What the controller at the other end speaks; while it is open. */
  readonly protocol: number;
  /** Says nothing to a replica that is not there; it will be told everything when it is. */
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

/** What is new in a report. */
interface News {
  readonly reports?: readonly VersionReport[];
  readonly forgets?: readonly ItemId[];
}

const REPORTS_PER_MESSAGE = 2_000;
/**
 * A controller of protocol 1 cannot say that it has not understood: it is told everything again
 * every so many beats.
 */
const BEATS_PER_REPETITION = 6;

export class PlanSubscriber {
  readonly #options: PlanSubscriberOptions;
  readonly #links: Map<string, Link> = new Map();
  readonly #reports: ReportState = new ReportState();
  /** The replica that items come from. */
  #source: Link | undefined;
  /** The release of whoever they came from last. */
  #release: string | undefined;
  /** The last state that was named whole, and by whom. */
  #named: { readonly state: number; readonly by: Link } | undefined;
  /** What the data plane serves. */
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
   * Opens links to replicas that are new and closes those to replicas that are gone. An empty
   * answer changes nothing: DNS may be away, too.
   */
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

  /**
   * Says how things stand, whether or not something has changed; to be called every few seconds.
   * Whoever knows otherwise asks.
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

  #open(address: string): Link {
    const { openLink, onState } = this.#options;
    const link: Link = openLink(address, {
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

  #subscribe(link: Link): void {
    this.#source = link;
    link.send({ type: "serve", have: Object.fromEntries(this.#options.journal.digests) });
  }

  #take(message: ControllerMessage, from: Link): void {
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
        // Of a later protocol, and not meant for us.
        return;
    }
  }

  #apply({ upserts, removes, synced, state, release }: DeltaMessage, from: Link): void {
    const { dataPlane, journal, onState } = this.#options;
    const encoded = new Map<ItemId, string>();
    const items: PlanItem[] = upserts.map((text) => {
      const item = decodeItem(text);
      encoded.set(item.id, text);
      return item;
    });
    this.#release = release;
    // Before the data plane has it: what it reports is of the version that it was given last.
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
   * Takes items from another controller from now on. The former one is left by ending the stream:
   * it would go on sending.
   */
  #turnTo(link: Link): void {
    const before = this.#source;
    if (before === link || !link.isOpen) return;
    this.#subscribe(link);
    before?.reset();
  }

  /**
   * Tells what is served as soon as it is. One wait at a time: what comes meanwhile is waited for
   * after it, all at once.
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

  /** The data plane has something to say of items as it has them. */
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

  /** In parts: one line must not grow with what exists. The last one says what they add up to. */
  #tellAll(link: Link): void {
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
   * A controller of protocol 1 forgets what was said of an item when it goes, and it may have gone
   * and come again between two messages.
   */
  #repeat(items: readonly PlanItem[]): void {
    const links = [...this.#links.values()].filter(({ isOpen, protocol }) => isOpen && protocol < 2);
    if (links.length === 0) return;
    const reports = items.flatMap(({ id }) => this.#reports.get(id) ?? []);
    if (reports.length > 0) for (const link of links) link.send({ type: "report", reports });
  }
}
