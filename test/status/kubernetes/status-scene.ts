import type { Key } from "../../../src/api/key.ts";
import type { Condition } from "../../../src/api/metadata.ts";
import type { Verdict } from "../../../src/engine/foundation/verdict.ts";
import type { ObjectVerdict } from "../../../src/engine/verdicts/verdicts.ts";
import { StatusWriter } from "../../../src/status/kubernetes/writer.ts";
import type { StatusTiming } from "../../../src/status/scheduling/timing.ts";
import { ManualClock } from "../../kubernetes/manual-clock.ts";
import { StatusServer, type Watcher } from "./status-server.ts";

export const GATEWAY: Key = "Gateway/infra/gw";

/** One controller: a status writer that watches the server. */
export class Replica {
  readonly writer: StatusWriter;
  /** How often what was written had to be written again. */
  rewrites = 0;
  /** Seconds until the effect of a watched change was told. */
  readonly told: number[] = [];
  readonly #server: StatusServer;
  readonly #watcher: Watcher = (changes) => this.writer.observe(changes);
  #leading: { readonly abort: AbortController; readonly work: Promise<void> } | undefined;

  constructor(server: StatusServer, clock: ManualClock, timing: Partial<StatusTiming>) {
    this.#server = server;
    this.writer = new StatusWriter({
      client: server,
      controllerName: "mergeway.dev/controller",
      features: () => new Set(),
      installed: () => INSTALLED,
      timing,
      clock,
      onContested: () => this.rewrites++,
      observer: { onStatusTold: ({ seconds }) => this.told.push(seconds) },
    });
    server.watchers.add(this.#watcher);
  }

  get isLeading(): boolean {
    return this.#leading !== undefined;
  }

  lead(): void {
    if (this.#leading !== undefined) return;
    const abort = new AbortController();
    this.#leading = { abort, work: this.writer.run(abort.signal) };
  }

  /** Ends what it does; what is under way on the wire may still take effect. */
  resign(): Promise<void> {
    const leading = this.#leading;
    this.#leading = undefined;
    leading?.abort.abort();
    return leading?.work ?? Promise.resolve();
  }

  stopWatching(): void {
    this.#server.watchers.delete(this.#watcher);
  }
}

const INSTALLED = { bundleVersions: ["v1.7.0"], isKnown: true };

/** A server and replicas whose engines agree, on one clock. */
export class Scene {
  readonly clock: ManualClock = new ManualClock();
  readonly server: StatusServer = new StatusServer(this.clock);
  readonly replicas: readonly Replica[];

  constructor({ replicas = 1, timing = {} }: { replicas?: number; timing?: Partial<StatusTiming> } = {}) {
    // A grace of the writer is tested where it matters.
    const all = { graceMs: 0, ...timing };
    this.replicas = Array.from({ length: replicas }, () => new Replica(this.server, this.clock, all));
    this.replicas[0]?.lead();
  }

  get first(): Replica {
    return this.replicas[0] as Replica;
  }

  judge(key: Key, verdict: ObjectVerdict | undefined, since?: number): void {
    for (const { writer } of this.replicas) writer.judge([[key, verdict]], since);
  }

  /** Creates an object and lets the watch bring it. */
  async create(key: Key): Promise<void> {
    this.server.create(key);
    await this.clock.advance(this.server.watchMs);
  }

  /** Times of the writes of an object, in milliseconds after a moment. */
  timesOf(key: Key, since: number): readonly number[] {
    return this.server.writesOf(key).map(({ at }) => at - since);
  }

  async end(): Promise<void> {
    const ends = this.replicas.map((replica) => replica.resign());
    await this.clock.advance(60_000);
    await Promise.all(ends);
  }
}

export interface SetFacts {
  readonly routes?: number;
  readonly generation?: number;
  readonly conflicted?: boolean;
  readonly words?: string;
}

/** The verdict on a set with one listener; without `programmed` it is pending. */
export function setVerdict(programmed: boolean, facts: SetFacts = {}): ObjectVerdict {
  const { routes = 0, generation = 1, conflicted = false, words = "the set is accepted" } = facts;
  const own = conflicted
    ? [say("Accepted", false, "ListenersNotValid"), say("Programmed", false, "ListenersNotValid")]
    : [
        say("Accepted", true, "Accepted", words),
        say("Programmed", programmed, programmed ? "Programmed" : "Pending"),
      ];
  const conditions = conflicted
    ? [say("Accepted", false, "HostnameConflict"), say("Programmed", false, "HostnameConflict")]
    : own;
  return {
    type: "set",
    gateway: GATEWAY,
    generation,
    conditions: own,
    listeners: [{ name: "web", port: 443, supportedKinds: [], attachedRoutes: routes, conditions }],
  };
}

interface GatewayFacts {
  readonly programmed?: boolean;
  readonly words?: string;
  readonly generation?: number;
}

export function gatewayVerdict(
  sets: number,
  { programmed = true, words = "served", generation = 1 }: GatewayFacts = {},
): ObjectVerdict {
  return {
    type: "gateway",
    gateway: GATEWAY,
    generation,
    conditions: [
      say("Accepted", true, "Accepted"),
      say("Programmed", programmed, programmed ? "Programmed" : "Pending", words),
    ],
    listeners: [],
    addresses: [],
    attachedListenerSets: sets,
  };
}

function say(type: string, holds: boolean, reason: string, message: string = reason): Verdict {
  return { type, status: holds ? "True" : "False", reason, message };
}

/** What a status says, in a line: its conditions, and its counts. */
export function summary(status: Readonly<Record<string, unknown>>): string {
  const {
    conditions = [],
    listeners = [],
    attachedListenerSets,
  } = status as {
    conditions?: readonly Condition[];
    listeners?: readonly { attachedRoutes: number; conditions: readonly Condition[] }[];
    attachedListenerSets?: number;
  };
  const lines = (list: readonly Condition[]): string =>
    list.map(({ type, status: is, reason }) => `${type}=${is}/${reason}`).join(" ");
  const counts = listeners.map(({ attachedRoutes, conditions: own }) => `${attachedRoutes} [${lines(own)}]`);
  return [
    lines(conditions),
    ...counts,
    ...(attachedListenerSets === undefined ? [] : [attachedListenerSets]),
  ].join(" | ");
}

/** What a verdict would say, in the same line. */
export function summaryOf(verdict: ObjectVerdict): string {
  return summary(verdict as unknown as Readonly<Record<string, unknown>>);
}
