/** A data plane pod as a process: the real subscriber around a data plane that takes its time. */

import type { DataPlane } from "../../src/dataplanes/dataplane.ts";
import { PlanDigest } from "../../src/dataplanes/remote/protocol/plan-digest.ts";
import { digestOf, encodeItem } from "../../src/dataplanes/remote/protocol/protocol.ts";
import { type Journal, PlanSubscriber } from "../../src/dataplanes/remote/subscriber/plan-subscriber.ts";
import { ReportQueue, reportFor } from "../../src/dataplanes/report-queue.ts";
import type { ItemReport } from "../../src/plan/item-report.ts";
import type { PlanDelta, PlanItem } from "../../src/plan/plan.ts";
import { SimulatedLink, type StreamWeather } from "./plan-stream.ts";
import type { SimulatedController } from "./simulated-controller.ts";
import { SimulatedProcess, type World } from "./world.ts";

const BEAT_MS = 5_000;

export interface PodOptions {
  readonly gateway: string;
  /** Controllers that a lookup of their name finds. */
  readonly controllers: () => readonly SimulatedController[];
  readonly weatherTo: (controller: SimulatedController) => StreamWeather;
  readonly onReady: () => void;
}

export class SimulatedPod {
  readonly name: string;
  readonly process: SimulatedProcess;
  readonly plane: SimulatedPlane;
  readonly #world: World;
  readonly #options: PodOptions;
  readonly #disk: Disk;
  isReady = false;

  constructor(world: World, name: string, options: PodOptions & { readonly disk?: Disk }) {
    this.#world = world;
    this.name = name;
    this.#options = options;
    this.#disk = options.disk ?? new Disk();
    this.process = new SimulatedProcess(name);
    this.plane = new SimulatedPlane(world, this.process);
  }

  start(): void {
    this.#world.tell(this.name, "starts");
    this.#world.after(0, () => this.#run(), this.process);
  }

  /** Ends at once; what is left is what its disk has, and the last lines may not be there yet. */
  kill(): Disk {
    this.#world.tell(this.name, "is killed");
    this.process.isAlive = false;
    this.#disk.lose(this.#world.random.integer(0, 2));
    return this.#disk;
  }

  #run(): void {
    const journal = new SimulatedJournal(this.#disk);
    const ready = (): void => {
      if (this.isReady) return;
      this.isReady = true;
      this.#options.onReady();
    };
    const byName = new Map<string, SimulatedController>();
    const subscriber = new PlanSubscriber({
      journal,
      dataPlane: this.plane,
      openLink: (address, events) => {
        const controller = byName.get(address);
        if (controller === undefined) throw new Error(`nobody is at ${address}`);
        const hello = {
          type: "hello",
          gateway: this.#options.gateway,
          pod: this.name,
          acknowledges: true,
          protocol: 2,
        } as const;
        const weather = this.#options.weatherTo(controller);
        return new SimulatedLink(
          { world: this.#world, pod: this.process, controller, hello, weather },
          events,
        );
      },
      onState: (state, detail) => {
        if (state === "synced") ready();
        if (state !== "disconnected")
          this.#world.tell(
            this.name,
            `${state === "synced" ? "has the whole plan of" : "is connected to"} ${detail}`,
          );
      },
    });
    if (journal.digests.size > 0) ready();
    const beat = (): void => {
      for (const controller of this.#options.controllers()) byName.set(controller.process.name, controller);
      subscriber.meet(this.#options.controllers().map(({ process }) => process.name));
      subscriber.beat();
      this.#world.after(BEAT_MS, beat, this.process);
    };
    beat();
  }
}

/** What a pod's journal has written. */
export class Disk {
  readonly lines: { readonly id: string; readonly text?: string }[] = [];

  lose(count: number): void {
    this.lines.splice(Math.max(0, this.lines.length - count), count);
  }
}

class SimulatedJournal implements Journal {
  readonly digests: Map<string, string> = new Map();
  readonly #saved: Map<string, string> = new Map();
  readonly #digest: PlanDigest = new PlanDigest();
  readonly #disk: Disk;

  constructor(disk: Disk) {
    this.#disk = disk;
    for (const { id, text } of disk.lines) {
      this.#note(id, text);
      if (text === undefined) this.#saved.delete(id);
      else this.#saved.set(id, text);
    }
  }

  takeSaved(): Iterable<string> {
    return this.#saved.values();
  }

  get digest(): string {
    return this.#digest.text;
  }

  record(upserts: ReadonlyMap<string, string>, removes: readonly string[]): void {
    for (const [id, text] of upserts) this.#write(id, text);
    for (const id of removes) this.#write(id);
  }

  #write(id: string, text?: string): void {
    this.#note(id, text);
    this.#disk.lines.push({ id, ...(text === undefined ? {} : { text }) });
  }

  #note(id: string, text: string | undefined): void {
    const before = this.digests.get(id);
    if (before !== undefined) this.#digest.toggle(before);
    this.digests.delete(id);
    if (text === undefined) return;
    const digest = digestOf(text);
    this.#digest.toggle(digest);
    this.digests.set(id, digest);
  }
}

/** Takes deltas one after the other, each after a while, and says so, as every data plane does. */
export class SimulatedPlane implements DataPlane {
  readonly features: ReadonlySet<string> = new Set();
  /** What requests would find. */
  readonly serves: Map<string, string> = new Map();
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #items: Map<string, PlanItem> = new Map();
  readonly #waiting: { readonly delta: PlanDelta; readonly done: () => void }[] = [];
  /** Ports that somebody else has. */
  readonly #takenPorts: Set<number> = new Set();
  readonly #reports: ReportQueue = new ReportQueue((id) => this.#reportOf(id));
  #last: Promise<boolean> = Promise.resolve(true);
  isStuck = false;
  delayMs = 20;

  constructor(world: World, process: SimulatedProcess) {
    this.#world = world;
    this.#process = process;
  }

  apply(delta: PlanDelta): void {
    for (const id of delta.removes) this.#items.delete(id);
    for (const item of delta.upserts) this.#items.set(item.id, item);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#last = promise;
    this.#waiting.push({ delta, done: () => resolve(true) });
    if (this.#waiting.length === 1) this.#next();
  }

  served(): Promise<boolean> {
    return this.#last;
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onReport(handler);
  }

  async close(): Promise<void> {}

  /** Somebody else takes a port, or lets go of it. */
  setTaken(port: number, isTaken: boolean): void {
    if (isTaken) this.#takenPorts.add(port);
    else this.#takenPorts.delete(port);
    for (const id of this.#items.keys()) this.#reports.change(id);
  }

  /** What it says of an item; undefined while it does not have the newest of it. */
  reportOf(id: string): ItemReport | undefined {
    return this.#reportOf(id);
  }

  #next(): void {
    const retry = (): void => {
      if (this.isStuck) return void this.#world.after(200, retry, this.#process);
      this.#take();
    };
    this.#world.after(this.#world.random.between(0, this.delayMs), retry, this.#process);
  }

  #take(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    for (const id of next.delta.removes) {
      this.serves.delete(id);
      this.#reports.forget(id);
    }
    for (const item of next.delta.upserts) {
      this.serves.set(item.id, encodeItem(item));
      this.#reports.renew(item.id);
      this.#reports.change(item.id);
    }
    next.done();
    if (this.#waiting.length > 0) this.#next();
  }

  #reportOf(id: string): ItemReport | undefined {
    const item = this.#items.get(id);
    if (item === undefined || this.serves.get(id) !== encodeItem(item)) return undefined;
    if (item.type === "port") return reportFor(id, "PortUnavailable", this.#problemOf(item.port));
    if (item.type === "certificate") return reportFor(id, "CertificateUnusable", undefined);
    if (item.type !== "listener") return undefined;
    const port = this.#items.get(item.port);
    return reportFor(id, "PortUnavailable", port?.type === "port" ? this.#problemOf(port.port) : undefined);
  }

  #problemOf(port: number): string | undefined {
    return this.#takenPorts.has(port) ? `port ${port} is taken` : undefined;
  }
}
