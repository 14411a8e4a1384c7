import { Worker } from "node:worker_threads";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { ItemId, PlanDelta, PortItem } from "../../../plan/plan.ts";
import type { RequestRecord } from "../../request-record.ts";
import type { TrafficCounts } from "../../traffic/traffic-counts.ts";
import { type PortOutcome, samePlace } from "../ports/ports.ts";
import type { FromWorker, ToWorker, WorkerSetup } from "./messages.ts";
import { toTransfer } from "./plan-transfer.ts";

const RESTART_MS = 500;
/** A worker that has not ended this long after its grace period is terminated. */
const UNRESPONSIVE_MS = 5_000;

export interface WorkerPoolOptions {
  readonly size: number;
  readonly setup: WorkerSetup;
  /** The whole plan, for a worker that has to be started again. */
  readonly table: RoutingTable;
  readonly numberOf: (port: PortItem) => number;
  readonly onPortOutcome: (port: ItemId, outcome: PortOutcome) => void;
  readonly onRequestEnd: ((record: RequestRecord) => void) | undefined;
  readonly traffic: TrafficCounts | undefined;
}

/**
 * Threads that serve the same plan on the same ports; the kernel divides the connections among
 * them. A port is open when all of them have opened it. A thread that dies is replaced and given
 * the whole plan.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #workers: Set<Worker> = new Set();
  readonly #outcomes: Map<ItemId, Map<Worker, PortOutcome>> = new Map();
  readonly #ports: Map<ItemId, PortItem> = new Map();
  readonly #turns: Map<number, { readonly waiting: Set<Worker>; readonly done: () => void }> = new Map();
  #turn = 0;
  #closing = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    for (let count = 0; count < options.size; count++) this.#start();
  }

  /** Resolves when every worker serves it. */
  apply(delta: PlanDelta): Promise<void> {
    this.#forgetOutcomes(delta);
    const turn = ++this.#turn;
    const message = this.#messageFor(delta, turn);
    return new Promise((done) => {
      this.#turns.set(turn, { waiting: new Set(this.#workers), done });
      for (const worker of this.#workers) worker.postMessage(message);
      this.#settle(turn);
    });
  }

  #forgetOutcomes(delta: PlanDelta): void {
    for (const id of delta.removes) {
      this.#outcomes.delete(id);
      this.#ports.delete(id);
    }
    for (const item of delta.upserts) {
      if (item.type !== "port") continue;
      const before = this.#ports.get(item.id);
      if (before !== undefined && !samePlace(before, item)) this.#outcomes.delete(item.id);
      this.#ports.set(item.id, item);
    }
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    const message: ToWorker = { type: "close", graceMs };
    await Promise.all(
      [...this.#workers].map(
        (worker) =>
          new Promise<void>((resolve) => {
            const limit = setTimeout(() => void worker.terminate(), graceMs + UNRESPONSIVE_MS);
            worker.once("exit", () => {
              clearTimeout(limit);
              resolve();
            });
            worker.postMessage(message);
          }),
      ),
    );
  }

  #start(): void {
    const worker = new Worker(new URL(workerFile, import.meta.url), {
      workerData: this.#options.setup,
      execArgv: [],
    });
    this.#workers.add(worker);
    worker.on("message", (message: FromWorker) => this.#receive(worker, message));
    worker.on("error", (error) => process.emitWarning(error, "EmbeddedWorkerFailed"));
    worker.once("exit", () => this.#onExit(worker));
  }

  #onExit(worker: Worker): void {
    this.#workers.delete(worker);
    this.#options.traffic?.setOpen(worker, undefined);
    for (const outcomes of this.#outcomes.values()) outcomes.delete(worker);
    for (const [turn, { waiting }] of this.#turns) {
      waiting.delete(worker);
      this.#settle(turn);
    }
    if (this.#closing) return;
    setTimeout(() => {
      if (this.#closing) return;
      this.#start();
      const replacement = [...this.#workers].at(-1);
      const whole = { upserts: [...this.#options.table.items()], removes: [] };
      replacement?.postMessage(this.#messageFor(whole, 0));
    }, RESTART_MS);
  }

  #messageFor(delta: PlanDelta, turn: number): ToWorker {
    const bound = new Map<ItemId, number>();
    for (const item of delta.upserts)
      if (item.type === "port") bound.set(item.id, this.#options.numberOf(item));
    return { type: "apply", turn, delta: toTransfer(delta), bound };
  }

  #receive(worker: Worker, message: FromWorker): void {
    if (message.type === "records") {
      for (const record of message.records) this.#options.onRequestEnd?.(record);
    } else if (message.type === "traffic") {
      this.#options.traffic?.add(message.numbers);
      this.#options.traffic?.setOpen(worker, message.open);
    } else if (message.type === "port") this.#onPortOutcome(worker, message.port, message.outcome);
    else if (message.type === "applied") {
      this.#turns.get(message.turn)?.waiting.delete(worker);
      this.#settle(message.turn);
    }
  }

  #settle(turn: number): void {
    const pending = this.#turns.get(turn);
    if (pending === undefined || pending.waiting.size > 0) return;
    this.#turns.delete(turn);
    pending.done();
  }

  #onPortOutcome(worker: Worker, port: ItemId, outcome: PortOutcome): void {
    const outcomes = this.#outcomes.get(port) ?? new Map<Worker, PortOutcome>();
    this.#outcomes.set(port, outcomes.set(worker, outcome));
    if (!outcome.bound) this.#options.onPortOutcome(port, outcome);
    else if (outcomes.size >= this.#workers.size && outcomes.values().every(({ bound }) => bound)) {
      this.#options.onPortOutcome(port, outcome);
    }
  }
}

/** The source file, or the built file. */
const workerFile: string = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
