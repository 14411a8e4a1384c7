/** A worker thread: the same serving as in the main thread, fed by messages. */

import { parentPort, workerData } from "node:worker_threads";
import type { ItemId } from "../../../plan/plan.ts";
import type { RequestRecord } from "../../request-record.ts";
import type { FromWorker, ToWorker, WorkerSetup } from "./messages.ts";
import { fromTransfer } from "./plan-transfer.ts";
import { ServingThread } from "./serving-thread.ts";

/** Records travel in batches: a message per request would cost more than many requests do. */
const BATCH_MS = 50;
const BATCH_RECORDS = 512;

const setup = workerData as WorkerSetup;
const { address, limits, trustedHops, ticketSecret, buckets, threads } = setup;
const numbers: Map<ItemId, number> = new Map();
let records: RequestRecord[] = [];
let refused: Map<ItemId, number> = new Map();
let flushing: NodeJS.Timeout | undefined;

const thread = new ServingThread({
  limits,
  trustedHops,
  ticketSecret: Buffer.from(ticketSecret),
  buckets,
  bindingOf: ({ id, port }) => ({ address, port: numbers.get(id) ?? port, reusePort: true }),
  onPortOutcome: (port, outcome) => send({ type: "port", port, outcome }),
  onRequestEnd: setup.wantsRecords ? collect : undefined,
  onConnectionRefused: setup.wantsRefusals ? collectRefused : undefined,
  threads,
});

parentPort?.on("message", (message: ToWorker) => {
  if (message.type === "apply") {
    for (const [id, number] of message.bound) numbers.set(id, number);
    for (const id of message.delta.removes) numbers.delete(id);
    thread.apply(fromTransfer(message.delta));
    send({ type: "applied", turn: message.turn });
  } else void close(message.graceMs);
});

async function close(graceMs: number): Promise<void> {
  await thread.close(graceMs);
  flush();
  // Nothing is left that keeps the thread alive: it ends by itself.
  parentPort?.close();
}

function collect(record: RequestRecord): void {
  records.push(record);
  if (records.length >= BATCH_RECORDS) flush();
  else flushing ??= setTimeout(flush, BATCH_MS);
}

function collectRefused(listener: ItemId): void {
  refused.set(listener, (refused.get(listener) ?? 0) + 1);
  flushing ??= setTimeout(flush, BATCH_MS);
}

function flush(): void {
  clearTimeout(flushing);
  flushing = undefined;
  if (records.length > 0) send({ type: "records", records });
  records = [];
  if (refused.size > 0) send({ type: "refused", connections: refused });
  refused = new Map();
}

function send(message: FromWorker): void {
  parentPort?.postMessage(message);
}
