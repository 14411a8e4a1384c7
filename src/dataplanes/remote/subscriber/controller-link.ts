import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { readLines } from "../protocol/lines.ts";
import {
  type ControllerMessage,
  PLAN_PATH,
  type PodMessage,
  PROTOCOL,
  PROTOCOL_HEADER,
} from "../protocol/protocol.ts";
import type { LinkEvents, PlanLink } from "./plan-subscriber.ts";

export interface LinkTarget {
  readonly address: string;
  /** `host:port` as the controller's certificate has it. */
  readonly controller: string;
  readonly authority: string;
  readonly gateway: string;
  readonly pod: string;
  /** Read for every connection: tokens rotate. */
  readonly token: () => Promise<string>;
}

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;
const PING_MS = 10_000;
const MAX_LINE = 256 * 1024 * 1024;

/** The connection to one replica of the controller. It reconnects with jittered backoff. */
export class ControllerLink implements PlanLink {
  readonly address: string;
  readonly #target: LinkTarget;
  readonly #events: LinkEvents;
  readonly #stop: AbortController = new AbortController();
  #stream: ClientHttp2Stream | undefined;
  #protocol = 1;

  constructor(target: LinkTarget, events: LinkEvents, signal: AbortSignal) {
    this.address = target.address;
    this.#target = target;
    this.#events = events;
    void this.#run(AbortSignal.any([signal, this.#stop.signal]));
  }

  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  get protocol(): number {
    return this.#protocol;
  }

  send(message: PodMessage): void {
    this.#stream?.write(`${JSON.stringify(message)}\n`);
  }

  reset(): void {
    this.#stream?.destroy();
  }

  close(): void {
    this.#stop.abort();
  }

  async #run(signal: AbortSignal): Promise<void> {
    let delay = FIRST_RETRY_MS;
    while (!signal.aborted) {
      const reason = await this.#connection(signal, () => {
        delay = FIRST_RETRY_MS;
      }).then(
        () => "the controller closed the stream",
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      this.#stream = undefined;
      if (signal.aborted) return;
      this.#events.onClose(reason);
      await sleep(delay * (0.5 + Math.random()), undefined, { signal }).catch(() => {});
      delay = Math.min(delay * 2, LAST_RETRY_MS);
    }
  }

  async #connection(signal: AbortSignal, onOpen: () => void): Promise<void> {
    const { address, controller, authority, gateway, pod, token } = this.#target;
    const at = controller.lastIndexOf(":");
    const host = address.includes(":") ? `[${address}]` : address;
    const session = connect(`https://${host}:${controller.slice(at + 1)}`, {
      ca: authority,
      servername: controller.slice(0, at),
      minVersion: "TLSv1.3",
    });
    const abort = (): void => session.destroy();
    signal.addEventListener("abort", abort);
    const watchdog = keepAlive(session);
    try {
      const stream = session.request({
        ":method": "POST",
        ":path": PLAN_PATH,
        authorization: `Bearer ${await token()}`,
      });
      const hello: PodMessage = { type: "hello", gateway, pod, acknowledges: true, protocol: PROTOCOL };
      stream.write(`${JSON.stringify(hello)}\n`);
      this.#protocol = await answered(session, stream);
      this.#stream = stream;
      onOpen();
      this.#events.onOpen();
      for await (const line of readLines(stream, () => MAX_LINE)) this.#events.onMessage(messageOf(line));
    } finally {
      clearInterval(watchdog);
      signal.removeEventListener("abort", abort);
      session.destroy();
    }
  }
}

/** A line that cannot be parsed may contain a private key: the error does not quote it. */
function messageOf(line: string): ControllerMessage {
  try {
    return JSON.parse(line) as ControllerMessage;
  } catch {
    throw new Error("the controller sent a line that is no JSON");
  }
}

/** Resolves with the protocol that the controller speaks. */
function answered(session: ClientHttp2Session, stream: ClientHttp2Stream): Promise<number> {
  return new Promise((resolve, reject) => {
    session.once("error", reject);
    stream.once("error", reject);
    stream.once("close", () => reject(new Error("the controller closed the stream")));
    stream.once("response", (headers) => {
      if (headers[":status"] === 200) resolve(Number(headers[PROTOCOL_HEADER] ?? 1));
      else reject(new Error(`the controller answered ${headers[":status"]}`));
    });
  });
}

/** Closes a connection that does not answer a ping. */
function keepAlive(session: ClientHttp2Session): NodeJS.Timeout {
  let answeredLast = true;
  session.on("error", () => session.destroy());
  return setInterval(() => {
    if (!answeredLast || session.destroyed) return session.destroy();
    answeredLast = false;
    return void session.ping(() => {
      answeredLast = true;
    });
  }, PING_MS);
}
