import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { registerTraffic } from "../dataplanes/traffic/exposition.ts";
import { TrafficCounts } from "../dataplanes/traffic/traffic-counts.ts";
import type { PlanDelta } from "../plan/plan.ts";
import type { PodAdmin } from "./admin.ts";
import { CertificateEnds } from "./certificate-ends.ts";

/** What a data plane pod tells of its traffic and of its own process. */
export class PodMetrics {
  readonly traffic: TrafficCounts = new TrafficCounts();
  readonly #registry: Registry = new Registry();
  readonly #certificates: CertificateEnds = new CertificateEnds(this.#registry);

  constructor(version: string) {
    registerTraffic(this.#registry, this.traffic);
    new Gauge({
      name: "mergeway_build_info",
      help: "The version that runs, always 1",
      labelNames: ["version"],
      registers: [this.#registry],
    }).set({ version }, 1);
    collectDefaultMetrics({ register: this.#registry });
  }

  /** What the data plane is given. */
  look(delta: PlanDelta): void {
    this.#certificates.apply(delta);
  }

  get exposition(): NonNullable<PodAdmin["metrics"]> {
    return { contentType: this.#registry.contentType, text: () => this.#registry.metrics() };
  }
}
