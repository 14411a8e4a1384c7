import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { registerTraffic } from "../../dataplanes/traffic/exposition.ts";
import { TrafficCounts } from "../../dataplanes/traffic/traffic-counts.ts";
import type { StateChange } from "../../view/change.ts";
import type { MergedState } from "../../view/merged-state.ts";
import type { AdminState } from "../admin-state.ts";
import { METRICS } from "./metric-table.ts";

type Labels = Readonly<Record<string, string>>;

export class Metrics {
  readonly #registry: Registry = new Registry();
  readonly #gauges: Map<string, Gauge> = new Map();
  readonly #counters: Map<string, Counter> = new Map();
  /** What the data plane counts. */
  readonly traffic: TrafficCounts = new TrafficCounts();

  constructor(version: string) {
    const registers = [this.#registry];
    registerTraffic(this.#registry, this.traffic);
    for (const [name, { type, help, labels }] of Object.entries(METRICS)) {
      const config = { name, help, labelNames: [...labels], registers };
      if (type === "gauge") this.#gauges.set(name, new Gauge(config));
      else if (type === "counter") this.#counters.set(name, new Counter(config));
      else throw new Error(`nobody counts ${name}`);
    }
    collectDefaultMetrics({ register: this.#registry });
    this.#set("mergeway_build_info", { version }, 1);
  }

  countChanges(changes: readonly StateChange[]): void {
    for (const { type } of changes) this.#count("mergeway_changes_total", { type }, 1);
  }

  setSourceErrors(count: number): void {
    this.#set("mergeway_source_errors", {}, count);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The exposition text for Prometheus, with the current state. */
  async text(admin: AdminState): Promise<string> {
    this.#showState(admin.state());
    this.#set("mergeway_ready", {}, admin.isReady() ? 1 : 0);
    return this.#registry.metrics();
  }

  #showState(state: MergedState): void {
    for (const [name, gauge] of this.#gauges) if (!NOT_FROM_STATE.has(name)) gauge.reset();
    this.#set("mergeway_stray_routes", {}, state.strayRoutes.length);
    for (const { owners } of state.gateways) for (const owner of owners) this.#showOwner(owner);
    for (const owner of state.orphans) this.#showOwner(owner);
  }

  #showOwner({ kind, namespace, name, listeners }: MergedState["orphans"][number]): void {
    for (const { section, state, certificates } of listeners) {
      this.#set("mergeway_listener_state", { kind, namespace, name, listener_name: section, state }, 1);
      for (const { secret, notAfter } of certificates) {
        const [secretNamespace = "", secretName = ""] = secret.split("/");
        if (notAfter === undefined) continue;
        const at = { namespace: secretNamespace, name: secretName };
        this.#set("mergeway_certificate_not_after_seconds", at, Date.parse(notAfter) / 1000);
      }
    }
  }

  #set(name: string, labels: Labels, value: number): void {
    known(this.#gauges, name).set(labels, value);
  }

  #count(name: string, labels: Labels, value: number): void {
    known(this.#counters, name).inc(labels, value);
  }
}

function known<T>(metrics: ReadonlyMap<string, T>, name: string): T {
  const metric = metrics.get(name);
  if (metric === undefined) throw new Error(`${name} is not in the table of metrics`);
  return metric;
}

/** Gauges that are not derived from the merged state. */
const NOT_FROM_STATE: ReadonlySet<string> = new Set([
  "mergeway_build_info",
  "mergeway_source_errors",
  "mergeway_ready",
]);
