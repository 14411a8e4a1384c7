/**
 * What the page knows, and how it stays current: the outline is read once, and again after events,
 * never more often than once a second nor for more than a tenth of the time.
 */
import type { Outline } from "../../view/outline.ts";
import type { ReadingScope } from "../../view/written/reading-scope.ts";
import { type ChangeRow, type TimedChange, withChange } from "../model/changes.ts";
import { SearchIndex } from "../model/filter.ts";
import { type Rates, ratesBetween, type TrafficReading } from "../model/traffic.ts";

export type ConnectionState = "connecting" | "live" | "lost";

export interface World {
  readonly version: string;
  /** How much of a cluster is shown; absent: all there is. */
  readonly scope: ReadingScope | undefined;
  readonly outline: Outline;
  readonly index: SearchIndex;
}

type Part = "outline" | "rates" | "changes" | "connection";

const SHORTEST_PAUSE_MS = 1_000;
const PAUSE_PER_READING = 9;
const PREPARE_MS = 100;
const TRAFFIC_MS = 2_000;

export class LiveWorld {
  world: World | undefined;
  rates: Rates = new Map();
  changes: readonly ChangeRow[] = [];
  connection: ConnectionState = "connecting";
  readonly #onChange: (part: Part) => void;
  #events: EventSource | undefined;
  #lastEvent = 0;
  #lastReading: TrafficReading | undefined;
  #isStale = true;
  #isReading = false;
  #nextReading = 0;

  constructor(onChange: (part: Part) => void) {
    this.#onChange = onChange;
  }

  start(): void {
    this.#follow();
    void this.#read();
    void this.#readTraffic();
    setInterval(() => void this.#readTraffic(), TRAFFIC_MS);
    // A tab that nobody sees keeps no connection: browsers allow six to a host.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#events?.close();
      else {
        this.#follow();
        this.#refresh();
      }
    });
  }

  #follow(): void {
    this.#events?.close();
    const events = new EventSource(`/api/v1/events?after=${this.#lastEvent}`);
    this.#events = events;
    events.addEventListener("open", () => {
      // What happened while there was no connection may be more than is kept.
      if (this.connection === "lost") this.#refresh();
      this.#setConnection("live");
    });
    events.addEventListener("error", () => this.#setConnection("lost"));
    events.addEventListener("change", (event) => this.#take(event as MessageEvent<string>));
  }

  #take({ data, lastEventId }: MessageEvent<string>): void {
    const id = Number(lastEventId);
    // A server that has begun anew counts from 1 again.
    if (id < this.#lastEvent) this.changes = [];
    this.#lastEvent = id;
    this.changes = withChange(this.changes, id, JSON.parse(data) as TimedChange);
    this.#onChange("changes");
    this.#refresh();
  }

  #setConnection(connection: ConnectionState): void {
    if (this.connection === connection) return;
    this.connection = connection;
    this.#onChange("connection");
  }

  #refresh(): void {
    if (this.#isStale) return;
    this.#isStale = true;
    if (!this.#isReading)
      setTimeout(() => void this.#read(), Math.max(0, this.#nextReading - performance.now()));
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    this.#isStale = false;
    const began = performance.now();
    try {
      const response = await fetch("/api/v1/outline");
      if (!response.ok) throw new Error(String(response.status));
      const { version, scope, ...outline } = (await response.json()) as Outline &
        Pick<World, "version" | "scope">;
      const index = new SearchIndex(outline);
      this.world = { version, scope, outline, index };
      // After the view is drawn.
      setTimeout(() => index.prepare(), PREPARE_MS);
      this.#onChange("outline");
    } catch {
      this.#isStale = true;
      this.#setConnection("lost");
    }
    const took = performance.now() - began;
    this.#isReading = false;
    this.#nextReading = performance.now() + Math.max(SHORTEST_PAUSE_MS, took * PAUSE_PER_READING);
    if (this.#isStale) setTimeout(() => void this.#read(), this.#nextReading - performance.now());
  }

  async #readTraffic(): Promise<void> {
    if (document.hidden) return;
    try {
      const response = await fetch("/api/v1/traffic");
      const { items } = (await response.json()) as Pick<TrafficReading, "items">;
      const reading = { at: performance.now(), items };
      const rates = ratesBetween(this.#lastReading, reading);
      this.#lastReading = reading;
      if (rates.size === 0 && this.rates.size === 0) return;
      this.rates = rates;
      this.#onChange("rates");
    } catch {
      // The events say that the connection is lost.
    }
  }
}
