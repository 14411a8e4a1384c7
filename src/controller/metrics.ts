/** Metrics of the controller. Labels are kinds, verbs and Gateways: nothing that a tenant can multiply. docs/reference/metrics.md lists them. */
import { createServer, type Server } from "node:http";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { KubernetesObserver } from "../kubernetes/observer.ts";
import type { StatusObserver } from "../status/kubernetes/writer.ts";

export class ControllerMetrics {
  readonly #registry: Registry = new Registry();
  readonly #requests: Histogram<"method" | "status"> = new Histogram({
    name: "mergeway_kubernetes_request_seconds",
    help: "Time until the API server answered, by method and status (0: no answer).",
    labelNames: ["method", "status"],
    registers: [this.#registry],
  });
  readonly #lists: Counter<"resource" | "again"> = this.#counter(
    "mergeway_kubernetes_lists_total",
    "Whole lists read, by resource.",
    ["resource", "again"],
  );
  readonly #watchEnds: Counter<"resource"> = this.#counter(
    "mergeway_kubernetes_watch_ends_total",
    "Watches that ended and were resumed, by resource.",
    ["resource"],
  );
  readonly #watchEvents: Counter<"resource"> = this.#counter(
    "mergeway_kubernetes_watch_events_total",
    "Events received, by resource.",
    ["resource"],
  );
  readonly #writes: Counter<"kind" | "result"> = this.#counter(
    "mergeway_status_writes_total",
    "Statuses written, by kind and result.",
    ["kind", "result"],
  );
  readonly #replicas: Gauge<"gateway"> = new Gauge({
    name: "mergeway_data_plane_replicas",
    help: "Data plane pods connected to this replica of the controller, by Gateway.",
    labelNames: ["gateway"],
    registers: [this.#registry],
  });
  readonly #steps: Histogram = new Histogram({
    name: "mergeway_engine_step_seconds",
    help: "Time that the engine took for one step.",
    buckets: [0.0001, 0.001, 0.01, 0.1, 1, 10],
    registers: [this.#registry],
  });
  readonly #leading: Gauge = new Gauge({
    name: "mergeway_leader",
    help: "1 on the replica that writes statuses and infrastructure.",
    registers: [this.#registry],
  });

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
    };
  }

  backlog(read: () => number): void {
    new Gauge({
      name: "mergeway_status_backlog",
      help: "Objects whose status is waiting to be looked at.",
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }

  replicas(gateway: string, connected: number): void {
    if (connected === 0) this.#replicas.remove({ gateway });
    else this.#replicas.set({ gateway }, connected);
  }

  leading(leads: boolean): void {
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

  serve(address: string): Promise<Server> {
    const server = createServer((request, response) => {
      if (request.url !== "/metrics") return void response.writeHead(404).end();
      return void this.#registry.metrics().then(
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

  #counter<L extends string>(name: string, help: string, labelNames: L[]): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }
}
