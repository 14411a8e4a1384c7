import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { RoutingTable } from "../../matching/routing-table.ts";
import type { StateChange } from "../../view/change.ts";
import type { MergedState } from "../../view/merged-state.ts";
import type { AdminState } from "../admin-state.ts";
import { type ListenerTraffic, TrafficTallies } from "./listener-traffic.ts";
import { METRICS } from "./metric-table.ts";
import { type CountedRequest, RequestTallies } from "./request-tallies.ts";
import { limitOfReason, TenantRefusals } from "./tenant-refusals.ts";

type Labels = Readonly<Record<string, string>>;

export class Metrics {
  readonly #registry: Registry = new Registry();
  readonly #gauges: Map<string, Gauge> = new Map();
  readonly #counters: Map<string, Counter> = new Map();
  readonly #requests: RequestTallies = new RequestTallies();
  readonly #traffic: TrafficTallies = new TrafficTallies();
  readonly #refusals: TenantRefusals = new TenantRefusals();

  constructor(version: string) {
    const registers = [this.#registry];
    for (const metric of this.#requests.metrics()) this.#registry.registerMetric(metric);
    for (const [name, { type, help, labels }] of Object.entries(METRICS)) {
      if (this.#registry.getSingleMetric(name) !== undefined) continue;
      const config = { name, help, labelNames: [...labels], registers };
      if (type === "gauge") this.#gauges.set(name, new Gauge(config));
      else if (type === "counter") this.#counters.set(name, new Counter(config));
      else throw new Error(`nobody counts ${name}`);
    }
    collectDefaultMetrics({ register: this.#registry });
    this.#set("mergeway_build_info", { version }, 1);
  }

  countRequest(request: CountedRequest): void {
    this.#requests.count(request);
    const { listener, reason, status } = request;
    if (listener === undefined) return;
    this.#traffic.count(listener, status);
    if (reason === undefined) return;
    const limit = limitOfReason.get(reason);
    if (limit !== undefined) this.#refusals.count(listener, limit);
  }

  countRefusedConnection(listener: string): void {
    this.#refusals.count(listener, "connections");
  }

  countChanges(changes: readonly StateChange[]): void {
    for (const { type } of changes) this.#count("mergeway_changes_total", { type }, 1);
  }

  setSourceErrors(count: number): void {
    this.#set("mergeway_source_errors", {}, count);
  }

  /** Requests by listener since the start. */
  traffic(table: RoutingTable): readonly ListenerTraffic[] {
    return this.#traffic.current(table);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The exposition text for Prometheus, with the current state. */
  async text(admin: AdminState): Promise<string> {
    this.#forgetHostnames(admin.table);
    this.#showState(admin.state());
    this.#showRefusals(admin.table);
    this.#set("mergeway_ready", {}, admin.isReady() ? 1 : 0);
    return this.#registry.metrics();
  }

  #forgetHostnames(table: RoutingTable): void {
    const current = new Set<string>();
    for (const item of table.items()) {
      if (item.type === "host" || item.type === "listener") current.add(item.hostname);
    }
    this.#requests.forgetAllBut(current);
  }

  #showRefusals(table: RoutingTable): void {
    const name = "mergeway_tenant_refusals_total";
    known(this.#counters, name).reset();
    for (const { labels, count } of this.#refusals.current(table)) this.#count(name, labels, count);
  }

  #showState(state: MergedState): void {
    for (const [name, gauge] of this.#gauges) if (!NOT_FROM_STATE.has(name)) gauge.reset();
    this.#set("mergeway_stray_routes", {}, state.strayRoutes.length);
    for (const gateway of state.gateways) {
      const { namespace, name, className, conditions, attachedListenerSets, owners } = gateway;
      this.#set("gatewayapi_gateway_info", { namespace, name, gatewayclass_name: className }, 1);
      this.#set(
        "gatewayapi_gateway_status_attached_listener_sets",
        { namespace, name },
        attachedListenerSets,
      );
      for (const { type, status } of conditions) {
        this.#set("gatewayapi_gateway_status", { namespace, name, type }, status === "True" ? 1 : 0);
      }
      for (const owner of owners)
        this.#showOwner(owner, { gateway_namespace: namespace, gateway_name: name });
    }
    for (const owner of state.orphans) this.#showOwner(owner, { gateway_namespace: "", gateway_name: "" });
  }

  #showOwner(owner: MergedState["orphans"][number], gateway: Labels): void {
    const { kind, namespace, name, role, conditions, listeners } = owner;
    const labels = { kind, namespace, name };
    if (role === "set") {
      this.#set("gatewayapi_listenerset_info", { ...labels, ...gateway }, 1);
      for (const { type, status } of conditions) {
        this.#set("gatewayapi_listenerset_status", { ...labels, type }, status === "True" ? 1 : 0);
      }
    }
    for (const { section, state, attachedRoutes, certificates } of listeners) {
      const listener = { ...labels, listener_name: section };
      this.#set("gatewayapi_listener_status_attached_routes", listener, attachedRoutes);
      this.#set("mergeway_listener_state", { ...listener, state }, 1);
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
