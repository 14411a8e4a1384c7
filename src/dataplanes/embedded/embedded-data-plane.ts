import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemReport } from "../../plan/item-report.ts";
import type { ItemId, PlanDelta } from "../../plan/plan.ts";
import type { CloseOptions, DataPlane } from "../dataplane.ts";
import type { TrafficCounts } from "../traffic/traffic-counts.ts";
import { embeddedFeatures } from "./features.ts";
import { createBucketMemory } from "./guards/rate-buckets.ts";
import { defaultLimits, type EmbeddedOptions } from "./limits/options.ts";
import type { PortOutcome } from "./ports/ports.ts";
import { Reporter } from "./reporter.ts";
import { keepRequestsShortLived } from "./short-lived-objects.ts";
import { ServingThread } from "./threads/serving-thread.ts";
import { WorkerPool } from "./threads/worker-pool.ts";

const DEFAULT_GRACE_MS = 10_000;

/** Serves a plan from within Node: in this thread, or in worker threads that share the ports. */
export function createEmbeddedDataPlane(options: EmbeddedOptions): DataPlane {
  return new EmbeddedDataPlane(options);
}

export class EmbeddedDataPlane implements DataPlane {
  readonly features: ReadonlySet<string> = embeddedFeatures;
  readonly #table: RoutingTable = new RoutingTable();
  readonly #reporter: Reporter = new Reporter(this.#table);
  readonly #threads: Threads;
  readonly #traffic: TrafficCounts | undefined;
  #applied: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: EmbeddedOptions) {
    this.#traffic = options.traffic;
    this.#threads = startThreads(options, this.#table, (port, outcome) =>
      this.#reporter.portOutcome(port, outcome),
    );
    options.signal?.addEventListener("abort", () => void this.close({ graceMs: 0 }), { once: true });
  }

  apply(delta: PlanDelta): void {
    if (this.#closed !== undefined) return;
    this.#reporter.beforeApply(delta);
    this.#table.apply(delta);
    this.#traffic?.apply(delta);
    const applied = this.#threads.apply(delta);
    // Nothing is programmed before it serves.
    if (applied === undefined) this.#reporter.afterApply(delta);
    else this.#applied = applied.then(() => this.#reporter.afterApply(delta));
  }

  async served(): Promise<boolean> {
    await this.#applied;
    return this.#closed === undefined;
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reporter.onReport(handler);
  }

  close({ graceMs = DEFAULT_GRACE_MS }: CloseOptions = {}): Promise<void> {
    this.#closed ??= this.#threads.close(graceMs);
    return this.#closed;
  }
}

/** What serves: this thread, or worker threads. */
interface Threads {
  /** A promise when it takes time until the delta is served. */
  apply(delta: PlanDelta): Promise<void> | void;
  close(graceMs: number): Promise<void>;
}

function startThreads(
  options: EmbeddedOptions,
  table: RoutingTable,
  onPortOutcome: (port: ItemId, outcome: PortOutcome) => void,
): Threads {
  const { trustedHops = 0, workers = 0, onRequestEnd, onlySampled = false, tracing, traffic } = options;
  const { address, portMap = (port) => port } = options.bind;
  const limits = { ...defaultLimits, ...options.limits };
  const ticketSecret = randomBytes(48);
  const buckets = createBucketMemory();
  keepRequestsShortLived();
  const size = workers === "auto" ? availableParallelism() : workers;
  if (size === 0) {
    const bindingOf = ({ port }: { readonly port: number }) => ({ address, port: portMap(port) });
    return new ServingThread({
      limits,
      trustedHops,
      ticketSecret,
      buckets,
      bindingOf,
      onPortOutcome,
      onRequestEnd,
      onlySampled,
      tracing,
      tally: traffic?.tally,
      threads: 1,
    });
  }
  return new WorkerPool({
    size,
    setup: {
      address,
      limits,
      trustedHops,
      ticketSecret,
      buckets,
      threads: size,
      wantsRecords: onRequestEnd !== undefined,
      onlySampled,
      tracing,
      wantsTraffic: traffic !== undefined,
    },
    table,
    numberOf: ({ port }) => portMap(port),
    onPortOutcome,
    onRequestEnd,
    traffic,
  });
}
