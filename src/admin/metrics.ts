import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { RoutingTable } from "../matching/routing-table.ts";
import type { MergedState } from "../view/merged-state.ts";
import type { StateChange } from "../view/state-changes.ts";
import type { AdminState } from "./admin-state.ts";
import { METRICS } from "./metric-table.ts";

/** What a data plane tells of a finished request, as far as it is counted. */
export interface CountedRequest {
  /** A pattern of the plan; absent when no listener was found. */
  readonly hostname?: string;
  readonly status: number;
  readonly durationMs: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
}

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** For requests that no listener is for. */
const NOBODY = "none";
const EVERYBODY = "*";

type Labels = Readonly<Record<string, string>>;

/** Everything that is counted of one hostname; looking labels up for every request would cost more than counting. */
interface HostnameCounters {
  readonly codes: Map<string, Counter.Internal>;
  readonly received: Counter.Internal;
  readonly sent: Counter.Internal;
  readonly duration: Histogram.Internal<string>;
}

export class Metrics {
  readonly #registry: Registry = new Registry();
  readonly #gauges: Map<string, Gauge> = new Map();
  readonly #counters: Map<string, Counter> = new Map();
  readonly #durations: Histogram;
  readonly #hostnames: Map<string, HostnameCounters> = new Map();

  constructor(version: string) {
    const registers = [this.#registry];
    const histograms = new Map<string, Histogram>();
    for (const [name, { type, help, labels }] of Object.entries(METRICS)) {
      const config = { name, help, labelNames: [...labels], registers };
      if (type === "gauge") this.#gauges.set(name, new Gauge(config));
      else if (type === "counter") this.#counters.set(name, new Counter(config));
      else histograms.set(name, new Histogram({ ...config, buckets: BUCKETS }));
    }
    this.#durations = known(histograms, "mergeway_request_duration_seconds");
    collectDefaultMetrics({ register: this.#registry });
    this.#set("mergeway_build_info", { version }, 1);
  }

  countRequest({ hostname, status, durationMs, bytesReceived, bytesSent }: CountedRequest): void {
    const name = hostname === undefined ? NOBODY : hostname || EVERYBODY;
    const counters = this.#hostnames.get(name) ?? this.#startHostname(name);
    const code = codeClass(status);
    let requests = counters.codes.get(code);
    if (requests === undefined) {
      requests = known(this.#counters, "mergeway_requests_total").labels({ hostname: name, code });
      counters.codes.set(code, requests);
    }
    requests.inc();
    counters.received.inc(bytesReceived);
    counters.sent.inc(bytesSent);
    counters.duration.observe(durationMs / 1000);
  }

  #startHostname(hostname: string): HostnameCounters {
    const counters = {
      codes: new Map(),
      received: known(this.#counters, "mergeway_request_bytes_total").labels({ hostname }),
      sent: known(this.#counters, "mergeway_response_bytes_total").labels({ hostname }),
      duration: this.#durations.labels({ hostname }),
    };
    this.#hostnames.set(hostname, counters);
    return counters;
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

  /** The text that Prometheus reads, with the state as it is now. */
  async text(admin: AdminState): Promise<string> {
    this.#forgetHostnames(admin.table);
    this.#showState(admin.state());
    this.#set("mergeway_ready", {}, admin.isReady() ? 1 : 0);
    return this.#registry.metrics();
  }

  /** Tenants come and go: a hostname that nobody serves any more must not stay for ever. */
  #forgetHostnames(table: RoutingTable): void {
    const current = new Set([NOBODY, EVERYBODY]);
    for (const item of table.items()) {
      if (item.type === "host" || item.type === "listener") current.add(item.hostname || EVERYBODY);
    }
    for (const [hostname, { codes }] of this.#hostnames) {
      if (current.has(hostname)) continue;
      this.#hostnames.delete(hostname);
      this.#durations.remove({ hostname });
      known(this.#counters, "mergeway_request_bytes_total").remove({ hostname });
      known(this.#counters, "mergeway_response_bytes_total").remove({ hostname });
      for (const code of codes.keys()) {
        known(this.#counters, "mergeway_requests_total").remove({ hostname, code });
      }
    }
  }

  #showState(state: MergedState): void {
    for (const [name, gauge] of this.#gauges) if (!KEPT.has(name)) gauge.reset();
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

/** Gauges that are not made anew from the state. */
const KEPT: ReadonlySet<string> = new Set([
  "mergeway_build_info",
  "mergeway_source_errors",
  "mergeway_ready",
]);

const CODES = ["000", "1xx", "2xx", "3xx", "4xx", "5xx"];

function codeClass(status: number): string {
  return CODES[Math.min(Math.trunc(status / 100), 5)] ?? "000";
}
