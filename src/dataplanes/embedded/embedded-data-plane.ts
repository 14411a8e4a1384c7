import { randomBytes } from "node:crypto";
import { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemId, PlanDelta } from "../../plan/plan.ts";
import type { CloseOptions, DataPlane, ItemReport } from "../dataplane.ts";
import { embeddedFeatures } from "./features.ts";
import { defaultLimits, type EmbeddedOptions } from "./options.ts";
import type { PortFate } from "./ports/ports.ts";
import { Reporter } from "./reporter.ts";
import { ServingThread } from "./serving-thread.ts";

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
  #closed: Promise<void> | undefined;

  constructor(options: EmbeddedOptions) {
    this.#threads = startThreads(options, (port, fate) => this.#reporter.portFate(port, fate));
    options.signal?.addEventListener("abort", () => void this.close({ graceMs: 0 }), { once: true });
  }

  apply(delta: PlanDelta): void {
    if (this.#closed !== undefined) return;
    this.#reporter.beforeApply(delta);
    this.#table.apply(delta);
    this.#threads.apply(delta);
    this.#reporter.afterApply(delta);
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reporter.onReport(handler);
  }

  close({ graceMs = DEFAULT_GRACE_MS }: CloseOptions = {}): Promise<void> {
    this.#closed ??= this.#threads.close(graceMs);
    return this.#closed;
  }
}

/** Whatever serves: one thread in the process, or many beside it. */
interface Threads {
  apply(delta: PlanDelta): void;
  close(graceMs: number): Promise<void>;
}

function startThreads(options: EmbeddedOptions, onPortFate: (port: ItemId, fate: PortFate) => void): Threads {
  const { address, portMap = (port) => port } = options.bind;
  return new ServingThread({
    limits: { ...defaultLimits, ...options.limits },
    trustedHops: options.trustedHops ?? 0,
    ticketSecret: randomBytes(48),
    bindingOf: ({ port }) => ({ address, port: portMap(port) }),
    onPortFate,
    onRequestEnd: options.onRequestEnd,
  });
}
