/**
 * Everything that was counted since the process began, with the labels of the current plan. What
 * has left the plan is forgotten.
 *
 * The number of series is limited: further routes of a listener, listeners and backends are counted
 * together, as `Overflow`, so that sums stay true.
 */

import type { ItemId, PlanDelta } from "../../plan/plan.ts";
import { TelemetryCounts } from "./telemetry-counts.ts";
import {
  addEach,
  addTo,
  CODES,
  FIRST_BUCKET,
  type HandshakeResult,
  type ListenerNumbers,
  noListenerNumbers,
  noRouteNumbers,
  type TrafficNumbers,
} from "./traffic-numbers.ts";
import { TrafficTally } from "./traffic-tally.ts";

export interface ListenerLabels {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly listener_name: string;
}

export interface ServiceLabels {
  readonly service_namespace: string;
  readonly service_name: string;
  readonly service_port: string;
}

export interface SeriesLimits {
  readonly listeners: number;
  readonly routesOfListener: number;
  readonly backends: number;
  /** A route without requests for so long gives way to another one. */
  readonly idleMs: number;
}

/** Of requests that no listener was for. */
const NO_LISTENER = "";
export const OVERFLOW = "Overflow";
const REASONS_OF_LISTENER = 40;
const DEFAULT_LIMITS: SeriesLimits = {
  listeners: 10_000,
  routesOfListener: 200,
  backends: 10_000,
  idleMs: 600_000,
};

/** What one listener has served since the process began. */
export interface ListenerTraffic {
  /** `Kind/namespace/name#section` */
  readonly listener: string;
  readonly requests: number;
  /** Answers with 5xx. */
  readonly errors: number;
}

interface KnownListener extends ListenerNumbers {
  /** When each route was last counted. */
  readonly last: Map<string, number>;
}

export class TrafficCounts {
  /** What this thread counts itself. */
  readonly tally: TrafficTally = new TrafficTally();
  readonly telemetry: TelemetryCounts = new TelemetryCounts();
  readonly #limits: SeriesLimits;
  readonly #labels: Map<ItemId, ListenerLabels> = new Map();
  readonly #services: Map<ItemId, ServiceLabels> = new Map();
  readonly #listeners: Map<ItemId, KnownListener> = new Map();
  readonly #upstreamErrors: Map<ItemId, Map<string, number>> = new Map();
  readonly #handshakes: Map<HandshakeResult, number> = new Map();
  readonly #open: Map<object, number> = new Map();
  #connections = 0;
  /** Requests that are known to have been served, and nothing more. */
  uncounted = 0;

  constructor(limits: Partial<SeriesLimits> = {}) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** Listeners and backends are known while the plan has them. */
  apply({ upserts, removes }: PlanDelta): void {
    if (removes.length > 0) this.#sumUp();
    for (const id of removes) {
      this.#labels.delete(id);
      this.#listeners.delete(id);
      this.#services.delete(id);
      this.#upstreamErrors.delete(id);
    }
    for (const item of upserts) {
      if (item.type === "listener") {
        const { kind, namespace, name } = item.owner;
        this.#labels.set(item.id, { kind, namespace, name, listener_name: item.section });
      } else if (item.type === "backend") {
        const { namespace, name, port } = item.service;
        const labels = { service_namespace: namespace, service_name: name, service_port: String(port) };
        this.#services.set(item.id, labels);
      }
    }
  }

  /** Adds what another thread or process has counted. */
  add(numbers: TrafficNumbers): void {
    const now = performance.now();
    for (const [id, each] of numbers.listeners) this.#addListener(id, each, now);
    for (const [id, reasons] of numbers.upstreamErrors) {
      const known = this.#services.has(id) ? this.#bounded(this.#upstreamErrors, id) : OVERFLOW;
      const sum = this.#upstreamErrors.get(known) ?? new Map<string, number>();
      this.#upstreamErrors.set(known, sum);
      for (const [reason, count] of reasons) addTo(sum, reason, count);
    }
    for (const [result, count] of numbers.handshakes) addTo(this.#handshakes, result, count);
    this.#connections += numbers.connections;
  }

  /** Connections that are open at one thread or process; undefined: it has ended. */
  setOpen(whose: object, open: number | undefined): void {
    if (open === undefined) this.#open.delete(whose);
    else this.#open.set(whose, open);
  }

  *listeners(): Generator<readonly [ListenerLabels, ListenerNumbers]> {
    this.#sumUp();
    for (const [id, numbers] of this.#listeners) yield [this.#labelsOf(id), numbers];
  }

  *upstreamErrors(): Generator<readonly [ServiceLabels, ReadonlyMap<string, number>]> {
    this.#sumUp();
    for (const [id, reasons] of this.#upstreamErrors)
      yield [this.#services.get(id) ?? OVERFLOW_SERVICE, reasons];
  }

  get handshakes(): ReadonlyMap<HandshakeResult, number> {
    this.#sumUp();
    return this.#handshakes;
  }

  get connections(): number {
    this.#sumUp();
    return this.#connections;
  }

  get openConnections(): number {
    return this.tally.open + this.#open.values().reduce((sum, open) => sum + open, 0);
  }

  /** Requests by listener since the start. */
  byListener(): readonly ListenerTraffic[] {
    this.#sumUp();
    return [...this.#listeners].flatMap(([id, { sums, routes }]) => {
      const labels = this.#labels.get(id);
      if (labels === undefined) return [];
      const { kind, namespace, name, listener_name } = labels;
      const requests = sums.subarray(FIRST_BUCKET).reduce((sum, count) => sum + count, 0);
      const errors = routes.values().reduce((sum, codes) => sum + (codes.at(-1) ?? 0), 0);
      return [{ listener: `${kind}/${namespace}/${name}#${listener_name}`, requests, errors }];
    });
  }

  #sumUp(): void {
    if (!this.tally.isEmpty) this.add(this.tally.take());
  }

  #addListener(id: ItemId, { sums, routes, replies }: ListenerNumbers, now: number): void {
    const listener = this.#listener(id);
    addEach(listener.sums, sums);
    for (const [route, codes] of routes) addEach(this.#route(listener, route, now), codes);
    for (const [reason, count] of replies) {
      const isNew = !listener.replies.has(reason) && listener.replies.size >= REASONS_OF_LISTENER;
      addTo(listener.replies, isNew ? OVERFLOW : reason, count);
    }
  }

  #listener(asked: ItemId): KnownListener {
    // A listener that has left the plan while requests of it were under way has no name any more.
    const isKnown = asked === NO_LISTENER || this.#labels.has(asked);
    const id = isKnown ? this.#bounded(this.#listeners, asked) : OVERFLOW;
    const known = this.#listeners.get(id);
    if (known !== undefined) return known;
    const fresh = { ...noListenerNumbers(), last: new Map<string, number>() };
    this.#listeners.set(id, fresh);
    return fresh;
  }

  #bounded(known: ReadonlyMap<ItemId, unknown>, id: ItemId): ItemId {
    const { listeners, backends } = this.#limits;
    const limit = known === this.#listeners ? listeners : backends;
    return known.has(id) || known.size < limit ? id : OVERFLOW;
  }

  #route(listener: KnownListener, asked: string, now: number): Float64Array {
    const { routes, last } = listener;
    const isFull = !routes.has(asked) && last.size >= this.#limits.routesOfListener;
    const route = isFull && !this.#makeRoom(listener, now) ? OVERFLOW : asked;
    if (route !== OVERFLOW) last.set(route, now);
    const known = routes.get(route);
    if (known !== undefined) return known;
    const fresh = noRouteNumbers();
    routes.set(route, fresh);
    return fresh;
  }

  /** The route that has been idle for longest is counted with the overflow from now on. */
  #makeRoom({ routes, last }: KnownListener, now: number): boolean {
    let oldest: string | undefined;
    for (const [route, at] of last)
      if (oldest === undefined || at < (last.get(oldest) as number)) oldest = route;
    if (oldest === undefined || now - (last.get(oldest) as number) < this.#limits.idleMs) return false;
    const overflow = routes.get(OVERFLOW) ?? noRouteNumbers();
    routes.set(OVERFLOW, overflow);
    addEach(overflow, routes.get(oldest) ?? noRouteNumbers());
    routes.delete(oldest);
    last.delete(oldest);
    return true;
  }

  #labelsOf(id: ItemId): ListenerLabels {
    const kind = id === NO_LISTENER ? "None" : OVERFLOW;
    return this.#labels.get(id) ?? { kind, namespace: "", name: "", listener_name: "" };
  }
}

const OVERFLOW_SERVICE: ServiceLabels = {
  service_namespace: "",
  service_name: OVERFLOW,
  service_port: "",
};

/** The classes of statuses that were counted. */
export function countedCodes(codes: Float64Array): readonly (readonly [code: string, count: number])[] {
  return CODES.map((code, at) => [code, codes[at] ?? 0] as const).filter(([, count]) => count > 0);
}
