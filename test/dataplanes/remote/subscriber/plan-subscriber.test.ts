/** What a pod says to controllers of this protocol and of the one before. */

import { beforeEach, describe, expect, it } from "vitest";
import type { DataPlane } from "../../../../src/dataplanes/dataplane.ts";
import {
  digestOf,
  encodeItem,
  type PodMessage,
  type ReportMessage,
} from "../../../../src/dataplanes/remote/protocol/protocol.ts";
import { ReportState } from "../../../../src/dataplanes/remote/protocol/report-state.ts";
import {
  type Journal,
  type LinkEvents,
  type PlanLink,
  PlanSubscriber,
} from "../../../../src/dataplanes/remote/subscriber/plan-subscriber.ts";
import type { ItemReport } from "../../../../src/plan/item-report.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";

const GATEWAY = "infra/shared";

function port(number: number): PlanItem {
  const id = `port:${number}`;
  return { type: "port", id, gateway: GATEWAY, transport: "tcp", port: number, protocol: "http" };
}

class FakeLink implements PlanLink {
  readonly address: string;
  readonly protocol: number;
  readonly events: LinkEvents;
  readonly said: PodMessage[] = [];
  isOpen = false;
  resets = 0;

  constructor(address: string, events: LinkEvents, protocol: number) {
    this.address = address;
    this.events = events;
    this.protocol = protocol;
  }

  open(): void {
    this.isOpen = true;
    this.events.onOpen();
  }

  send(message: PodMessage): void {
    if (this.isOpen) this.said.push(message);
  }

  reset(): void {
    this.resets++;
    this.isOpen = false;
  }

  close(): void {}

  get reports(): readonly ReportMessage[] {
    return this.said.filter((message) => message.type === "report");
  }
}

describe("a subscriber", () => {
  const links = new Map<string, FakeLink>();
  let subscriber: PlanSubscriber;
  let report: (...reports: readonly ItemReport[]) => void;

  beforeEach(() => {
    links.clear();
    let handler: (reports: readonly ItemReport[]) => void = () => {};
    report = (...reports) => handler(reports);
    const dataPlane: DataPlane = {
      features: new Set(),
      apply: () => {},
      onReport: (given) => {
        handler = given;
      },
      close: async () => {},
    };
    subscriber = new PlanSubscriber({
      journal: new MemoryJournal(),
      dataPlane,
      openLink: (address, events) => {
        const link = new FakeLink(address, events, address === "old" ? 1 : 2);
        links.set(address, link);
        return link;
      },
    });
  });

  function link(address: string): FakeLink {
    const found = links.get(address);
    if (found === undefined) throw new Error(`no link to ${address}`);
    return found;
  }

  function connect(...addresses: readonly string[]): void {
    subscriber.meet(addresses);
    for (const address of addresses) link(address).open();
  }

  function deliver(address: string, ...items: readonly PlanItem[]): void {
    const upserts = items.map(encodeItem);
    link(address).events.onMessage({ type: "delta", upserts, removes: [], state: 1, release: "1.0" });
  }

  const VERSION = digestOf(encodeItem(port(80)));
  const PROGRAMMED = { id: "port:80", of: VERSION, state: "programmed" } as const;

  function toldOf(...reports: readonly (typeof PROGRAMMED)[]): string {
    const state = new ReportState();
    for (const each of reports) state.set(each);
    return state.digest;
  }

  it("reports the version that its data plane has", () => {
    connect("new");
    deliver("new", port(80));
    report({ id: "port:80", state: "programmed" }, { id: "port:81", state: "programmed" });
    expect(link("new").reports.at(-1)).toEqual({
      type: "report",
      reports: [PROGRAMMED],
      release: "1.0",
      told: toldOf(PROGRAMMED),
    });
  });

  it("reports the items that it no longer has", () => {
    connect("new");
    deliver("new", port(80));
    report({ id: "port:80", state: "programmed" });
    link("new").events.onMessage({ type: "delta", upserts: [], removes: ["port:80"] });
    expect(link("new").reports.at(-1)).toMatchObject({ forgets: ["port:80"], told: toldOf() });
  });

  it("sends all reports when asked, and its digests with every beat", () => {
    connect("new", "other");
    deliver("new", port(80));
    report({ id: "port:80", state: "programmed" });
    const before = link("new").said.length;
    link("other").events.onMessage({ type: "tell" });
    expect(link("other").reports.at(-1)).toMatchObject({ whole: true, reports: [PROGRAMMED] });
    expect(link("new").said).toHaveLength(before);
    subscriber.beat();
    expect(link("new").reports.at(-1)).toMatchObject({ reports: [], told: toldOf(PROGRAMMED) });
  });

  it("takes its items from the leader that offers them, and resets the former stream", () => {
    connect("new", "other");
    expect(link("new").said.map(({ type }) => type)).toContain("serve");
    link("other").events.onMessage({ type: "offer" });
    expect(link("other").said.at(-1)).toEqual({ type: "serve", have: {} });
    expect(link("new").resets).toBe(1);
    link("other").events.onMessage({ type: "offer" });
    expect(link("other").said.filter(({ type }) => type === "serve")).toHaveLength(1);
  });

  describe("with a controller of protocol 1", () => {
    it("sends nothing that the controller would refuse", () => {
      connect("old", "new");
      deliver("old", port(80));
      report({ id: "port:80", state: "programmed" });
      for (let beat = 0; beat < 20; beat++) subscriber.beat();
      const types = new Set(link("old").said.map(({ type }) => type));
      expect([...types].sort()).toEqual(["report", "serve"]);
    });

    it("repeats its reports at intervals, and when an item is added again", () => {
      connect("old", "new");
      deliver("old", port(80));
      report({ id: "port:80", state: "programmed" });
      const repeated = (address: string): number =>
        link(address).reports.filter(({ reports }) => reports.length > 0).length;
      expect([repeated("old"), repeated("new")]).toEqual([1, 1]);
      for (let beat = 0; beat < 6; beat++) subscriber.beat();
      expect([repeated("old"), repeated("new")]).toEqual([2, 1]);
      deliver("old", port(80));
      expect([repeated("old"), repeated("new")]).toEqual([3, 1]);
    });
  });
});

class MemoryJournal implements Journal {
  readonly digests: Map<string, string> = new Map();
  readonly digest = "";

  takeSaved(): readonly string[] {
    return [];
  }

  record(upserts: ReadonlyMap<string, string>, removes: readonly string[]): void {
    for (const [id, text] of upserts) this.digests.set(id, digestOf(text));
    for (const id of removes) this.digests.delete(id);
  }
}
