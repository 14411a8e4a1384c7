/**
 * Metrics of the controller; src/controller/metric-table.ts declares them,
 * docs/reference/metrics.md lists them.
 */
import { createServer, type Server } from "node:http";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { ConfirmedReplicas } from "../dataplanes/remote/publisher/confirmations.ts";
import type { ReplicaLag } from "../dataplanes/remote/publisher/replica.ts";
import type { TenantViolations } from "../engine/verdicts/tenant-verdicts.ts";
import type { KubernetesObserver } from "../kubernetes/observer.ts";
import type { StatusObserver } from "../status/kubernetes/writer-options.ts";
import { StateExposition } from "../status/metrics/state-exposition.ts";
import type { StateView } from "../status/metrics/state-snapshot.ts";
import type { ClaimCount } from "./claims/claim-writer.ts";
import type { ListenerCount } from "./listener-states.ts";
import { CONTROLLER_METRICS, type ControllerMetricName } from "./metric-table.ts";
import type { QuotaSeries } from "./quota-series.ts";

const STEP_BUCKETS = [0.0001, 0.001, 0.01, 0.1, 1, 10];
const PROPAGATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type PropagationStage = "sent" | "acknowledged" | "status";

/** Values that are read when somebody asks. */
export interface Readings {
  readonly backlog: () => number;
  readonly lags: () => readonly ReplicaLag[];
  readonly confirmed: () => ReadonlyMap<string, ConfirmedReplicas>;
  readonly eventsDropped: () => number;
  readonly listeners: () => readonly ListenerCount[];
  readonly violations: () => Iterable<TenantViolations>;
  readonly quotas: () => readonly QuotaSeries[];
  readonly claims: () => readonly ClaimCount[];
}

export class ControllerMetrics {
  readonly #registry: Registry = new Registry();
  readonly #requests: Histogram = this.#histogram("mergeway_kubernetes_request_seconds");
  readonly #lists: Counter = this.#counter("mergeway_kubernetes_lists_total");
  readonly #watchEnds: Counter = this.#counter("mergeway_kubernetes_watch_ends_total");
  readonly #watchEvents: Counter = this.#counter("mergeway_kubernetes_watch_events_total");
  readonly #steps: Histogram = this.#histogram("mergeway_engine_step_seconds", STEP_BUCKETS);
  readonly #propagation: Histogram = this.#histogram("mergeway_propagation_seconds", PROPAGATION_BUCKETS);
  readonly #replicas: Gauge = this.#gauge("mergeway_data_plane_replicas");
  readonly #refusals: Counter = this.#counter("mergeway_stream_refusals_total");
  readonly #writes: Counter = this.#counter("mergeway_status_writes_total");
  readonly #contested: Counter = this.#counter("mergeway_status_fights_total");
  readonly #failures: Counter = this.#counter("mergeway_infrastructure_failures_total");
  readonly #leading: Gauge = this.#gauge("mergeway_leader");

  #state: StateExposition | undefined;
  #leads = false;

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
  }

  /** What the Kubernetes side calls; `log` is handed through. */
  observer(log: KubernetesObserver["log"]): KubernetesObserver & StatusObserver {
    return {
      ...(log === undefined ? {} : { log }),
      onRequest: ({ method, status, seconds }) =>
        this.#requests.observe({ method, status: String(status) }, seconds),
      onList: ({ resource, again }) => this.#lists.inc({ resource, again: String(again) }),
      onWatchEnd: ({ resource }) => this.#watchEnds.inc({ resource }),
      onWatchEvents: ({ resource, count }) => this.#watchEvents.inc({ resource }, count),
      onStatusWrite: ({ kind, result }) => this.#writes.inc({ kind, result }),
      onStatusContested: ({ kind }) => this.#contested.inc({ kind }),
      onStatusTold: ({ seconds }) => this.propagated("status", seconds),
    };
  }

  read(readings: Readings): void {
    const { backlog, lags, confirmed, eventsDropped, violations, listeners, claims, quotas } = readings;
    this.#gauge("mergeway_listeners", (gauge) => {
      gauge.reset();
      for (const { gateway, state, count } of listeners()) gauge.set({ gateway, state }, count);
    });
    this.#gauge("mergeway_tenant_policy_violations", (gauge) => {
      gauge.reset();
      for (const { gateway: key, listeners: refused, routes } of violations()) {
        const gateway = key.slice(key.indexOf("/") + 1);
        gauge.set({ gateway, kind: "listener" }, refused);
        gauge.set({ gateway, kind: "route" }, routes);
      }
    });
    const eachQuota = (gauge: Gauge, value: (series: QuotaSeries) => number): void => {
      gauge.reset();
      for (const series of quotas()) {
        const { gateway, namespace, resource } = series;
        gauge.set({ gateway, tenant_namespace: namespace, resource }, value(series));
      }
    };
    this.#gauge("mergeway_tenant_quota_used", (gauge) => eachQuota(gauge, ({ used }) => used));
    this.#gauge("mergeway_tenant_quota_limit", (gauge) => eachQuota(gauge, ({ limit }) => limit));
    this.#gauge("mergeway_hostname_claims", (gauge) => {
      gauge.reset();
      for (const { gateway: key, held, unheld } of claims()) {
        const gateway = key.slice(key.indexOf("/") + 1);
        gauge.set({ gateway, state: "held" }, held);
        gauge.set({ gateway, state: "unheld" }, unheld);
      }
    });
    this.#gauge("mergeway_status_backlog", (gauge) => gauge.set(backlog()));
    const eachPod = (gauge: Gauge, value: (lag: ReplicaLag) => number): void => {
      gauge.reset();
      for (const lag of lags()) gauge.set({ gateway: lag.gateway, pod: lag.pod }, value(lag));
    };
    this.#gauge("mergeway_data_plane_unsent_items", (gauge) => eachPod(gauge, ({ unsent }) => unsent));
    this.#gauge("mergeway_data_plane_unacknowledged_seconds", (gauge) =>
      eachPod(gauge, ({ unacknowledgedSeconds }) => unacknowledgedSeconds),
    );
    this.#gauge("mergeway_data_plane_lagging_replicas", (gauge) => {
      gauge.reset();
      for (const [gateway, { lagging }] of confirmed()) gauge.set({ gateway }, lagging.length);
    });
    this.#counter("mergeway_events_dropped_total", (counter) => {
      counter.reset();
      counter.inc(eventsDropped());
    });
  }

  replicas(gateway: string, connected: number): void {
    if (connected === 0) this.#replicas.remove({ gateway });
    else this.#replicas.set({ gateway }, connected);
  }

  refused(reason: string): void {
    this.#refusals.inc({ reason });
  }

  propagated(stage: PropagationStage, seconds: number): void {
    this.#propagation.observe({ stage }, seconds);
  }

  infrastructureFailed(): void {
    this.#failures.inc();
  }

  leading(leads: boolean): void {
    this.#leads = leads;
    this.#leading.set(leads ? 1 : 0);
  }

  /** Runs one step of the engine and keeps its time. */
  timed<T>(step: () => T): T {
    const end = this.#steps.startTimer();
    try {
      return step();
    } finally {
      end();
    }
  }

  exposition(): Promise<string> {
    return this.#registry.metrics();
  }

  /** From now on the state of objects is told to whoever asks for it. */
  showState(view: StateView): void {
    this.#state = new StateExposition(view, () => this.#leads);
  }

  serve(address: string): Promise<Server> {
    const server = createServer((request, response) => {
      if (request.url === "/metrics/state" && this.#state !== undefined)
        return void this.#state.answer(request, response);
      if (request.url !== "/metrics") return void response.writeHead(404).end();
      return void this.exposition().then(
        (text) => response.writeHead(200, { "content-type": this.#registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    });
    const at = address.lastIndexOf(":");
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(Number(address.slice(at + 1)), address.slice(0, at), () => resolve(server));
    });
  }

  #counter(name: ControllerMetricName, collect?: (counter: Counter) => void): Counter {
    return new Counter({ ...this.#settings(name), ...collecting(collect) });
  }

  #gauge(name: ControllerMetricName, collect?: (gauge: Gauge) => void): Gauge {
    return new Gauge({ ...this.#settings(name), ...collecting(collect) });
  }

  #histogram(name: ControllerMetricName, buckets?: number[]): Histogram {
    return new Histogram({ ...this.#settings(name), ...(buckets === undefined ? {} : { buckets }) });
  }

  #settings(name: ControllerMetricName): {
    name: string;
    help: string;
    labelNames: string[];
    registers: Registry[];
  } {
    const { help, labels } = CONTROLLER_METRICS[name];
    return { name, help, labelNames: [...labels], registers: [this.#registry] };
  }
}

/** prom-client hands the metric over as `this`. */
function collecting<M>(collect: ((metric: M) => void) | undefined): { collect?: (this: M) => void } {
  if (collect === undefined) return {};
  return {
    collect(this: M): void {
      collect(this);
    },
  };
}
