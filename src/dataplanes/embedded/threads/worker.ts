/** A worker thread: the same serving as in the main thread, fed by messages. */

import { parentPort, workerData } from "node:worker_threads";
import type { ItemId } from "../../../plan/plan.ts";
import type { RequestRecord } from "../../request-record.ts";
import { TrafficTally } from "../../traffic/traffic-tally.ts";
import type { FromWorker, ToWorker, WorkerSetup } from "./messages.ts";
import { fromTransfer } from "./plan-transfer.ts";
import { ServingThread } from "./serving-thread.ts";

/** Records travel in batches: a message per request would cost more than many requests do. */
const BATCH_MS = 50;
const BATCH_RECORDS = 512;
/** Numbers are summed up here and sent rarely: their message costs what is in it. */
const TRAFFIC_MS = 250;

const setup = workerData as WorkerSetup;
const { address, limits, trustedHops, ticketSecret, buckets, threads, onlySampled, tracing } = setup;
const numbers: Map<ItemId, number> = new Map();
let records: RequestRecord[] = [];
let flushing: NodeJS.Timeout | undefined;
const tally: TrafficTally | undefined = setup.wantsTraffic ? new TrafficTally() : undefined;
let toldOpen = 0;

const thread = new ServingThread({
  limits,
  trustedHops,
  ticketSecret: Buffer.from(ticketSecret),
  buckets,
  bindingOf: ({ id, port }) => ({ address, port: numbers.get(id) ?? port, reusePort: true }),
  onPortOutcome: (port, outcome) => send({ type: "port", port, outcome }),
  onRequestEnd: setup.wantsRecords ? collect : undefined,
  onlySampled,
  tracing,
  tally,
  threads,
});

const counting = tally && setInterval(() => tellTraffic(tally), TRAFFIC_MS);

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
  clearInterval(counting);
  if (tally !== undefined) tellTraffic(tally);
  // Nothing is left that keeps the thread alive: it ends by itself.
  parentPort?.close();
}

function collect(record: RequestRecord): void {
  records.push(record);
  if (records.length >= BATCH_RECORDS) flush();
  else flushing ??= setTimeout(flush, BATCH_MS);
}

function tellTraffic({ isEmpty, open }: TrafficTally): void {
  if (tally === undefined || (isEmpty && open === toldOpen)) return;
  toldOpen = open;
  send({ type: "traffic", numbers: tally.take(), open });
}

function flush(): void {
  clearTimeout(flushing);
  flushing = undefined;
  if (records.length > 0) send({ type: "records", records });
  records = [];
}

function send(message: FromWorker): void {
  parentPort?.postMessage(message);
}
