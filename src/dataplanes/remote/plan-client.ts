/**
 * The pod's end of the stream: keeps a data plane fed. Serves what it last knew from the first moment, reconnects with backoff, and never takes anything away because
 * the controller is away.
 */
import { type ClientHttp2Session, connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import type { ItemId, PlanItem } from "../../plan/plan.ts";
import type { DataPlane, ItemReport } from "../dataplane.ts";
import { readLines } from "./lines.ts";
import type { PlanJournal } from "./plan-journal.ts";
import { type ControllerMessage, decodeItem, digestOf, PLAN_PATH, type PodMessage } from "./protocol.ts";

export interface PlanClientOptions {
  /** `https://host:port` */
  readonly url: string;
  readonly authority: string;
  readonly gateway: string;
  readonly pod: string;
  /** Read for every connection: tokens rotate. */
  readonly token: () => Promise<string>;
  readonly journal: PlanJournal;
  readonly dataPlane: DataPlane;
  readonly onState?: (state: "connected" | "synced" | "disconnected", detail?: string) => void;
}

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;
const PING_MS = 10_000;
const MAX_LINE = 256 * 1024 * 1024;

/** Runs until the signal is aborted. */
export async function runPlanClient(options: PlanClientOptions, signal: AbortSignal): Promise<void> {
  const { journal, dataPlane } = options;
  const reports = new Map<ItemId, ItemReport>();
  let send: ((message: PodMessage) => void) | undefined;
  dataPlane.onReport((changed) => {
    for (const report of changed) reports.set(report.id, report);
    send?.({ type: "report", reports: changed });
  });
  dataPlane.apply({ upserts: [...journal.items.values()].map(decodeItem), removes: [] });

  let delay = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      await stream(options, signal, (sender) => {
        send = sender;
        delay = FIRST_RETRY_MS;
        sender({ type: "report", reports: [...reports.values()] });
      });
      options.onState?.("disconnected");
    } catch (error) {
      options.onState?.("disconnected", error instanceof Error ? error.message : String(error));
    }
    send = undefined;
    await sleep(delay * (0.5 + Math.random()), undefined, { signal }).catch(() => {});
    delay = Math.min(delay * 2, LAST_RETRY_MS);
  }
  await journal.flushed();
}

async function stream(
  options: PlanClientOptions,
  signal: AbortSignal,
  onOpen: (send: (message: PodMessage) => void) => void,
): Promise<void> {
  const session = connect(options.url, { ca: options.authority, minVersion: "TLSv1.3" });
  const abort = (): void => session.destroy();
  signal.addEventListener("abort", abort);
  const watchdog = keepAlive(session);
  try {
    const token = await options.token();
    const request = session.request({
      ":method": "POST",
      ":path": PLAN_PATH,
      authorization: `Bearer ${token}`,
    });
    const send = (message: PodMessage): void => void request.write(`${JSON.stringify(message)}\n`);
    const have = Object.fromEntries([...options.journal.items].map(([id, text]) => [id, digestOf(text)]));
    send({ type: "hello", gateway: options.gateway, pod: options.pod, have });
    await new Promise<void>((resolve, reject) => {
      session.once("error", reject);
      request.once("error", reject);
      request.once("close", () => reject(new Error("the controller closed the stream")));
      request.once("response", (headers) => {
        if (headers[":status"] === 200) resolve();
        else reject(new Error(`the controller answered ${headers[":status"]}`));
      });
    });
    options.onState?.("connected");
    onOpen(send);
    for await (const line of readLines(request, MAX_LINE))
      take(JSON.parse(line) as ControllerMessage, options);
  } finally {
    clearInterval(watchdog);
    signal.removeEventListener("abort", abort);
    session.destroy();
  }
}

function take(
  { upserts, removes, synced }: ControllerMessage,
  { journal, dataPlane, onState }: PlanClientOptions,
): void {
  const encoded = new Map<ItemId, string>();
  const items: PlanItem[] = upserts.map((text) => {
    const item = decodeItem(text);
    encoded.set(item.id, text);
    return item;
  });
  dataPlane.apply({ upserts: items, removes });
  journal.record(encoded, removes);
  if (synced) onState?.("synced");
}

/** A connection that answers nothing is a dead one, whatever the kernel believes. */
function keepAlive(session: ClientHttp2Session): NodeJS.Timeout {
  let answered = true;
  session.on("error", () => session.destroy());
  return setInterval(() => {
    if (!answered) return session.destroy();
    answered = false;
    return void session.ping(() => {
      answered = true;
    });
  }, PING_MS);
}
