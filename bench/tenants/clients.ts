/** Clients: one waits for the first right answer, and some keep their connections. */

import { once } from "node:events";
import { Agent, type RequestOptions, request } from "node:https";
import type { TLSSocket } from "node:tls";

export interface Seen {
  /** 0: no answer. */
  readonly status: number;
  /** Of the certificate that was shown. */
  readonly fingerprint: string;
}

const TIME_LIMIT_MS = 120_000;
const ANSWER_MS = 10_000;
const NOTHING: Seen = { status: 0, fingerprint: "" };

/** Sends one request, on a connection of its own unless an agent keeps one. */
export async function askHost(port: number, host: string, path: string, agent?: Agent): Promise<Seen> {
  const options: RequestOptions = {
    host: "127.0.0.1",
    port,
    path,
    servername: host,
    headers: { host },
    agent: agent ?? false,
    rejectUnauthorized: false,
    timeout: ANSWER_MS,
  };
  const sent = request(options);
  sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
  sent.end();
  try {
    const [response] = await once(sent, "response");
    const fingerprint = (response.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256 ?? "";
    response.resume();
    await once(response, "end");
    return { status: response.statusCode ?? 0, fingerprint };
  } catch {
    return NOTHING;
  }
}

/**
 * Asks until the answer is right, and waits a tenth of the time that has passed between two
 * requests: so asking is no load of its own.
 */
export async function firstRight(
  began: number,
  ask: () => Promise<Seen>,
  isRight: (seen: Seen) => boolean,
): Promise<number> {
  for (;;) {
    const seen = await ask();
    const passed = performance.now() - began;
    if (isRight(seen)) return passed;
    if (passed > TIME_LIMIT_MS)
      throw new Error(`no right answer in ${TIME_LIMIT_MS} ms, the last was ${seen.status}`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(20, passed / 10)));
  }
}

/** Connections to tenants that no change concerns. They must last. */
export class Regulars {
  readonly #connections: readonly { readonly agent: Agent; readonly host: string }[];
  readonly #port: number;
  /** Connections that have ended. */
  lost = 0;
  /** Requests that got anything but 200. */
  failed = 0;

  constructor(port: number, hosts: readonly string[]) {
    this.#port = port;
    this.#connections = hosts.map((host) => ({ host, agent: new Agent({ keepAlive: true, maxSockets: 1 }) }));
  }

  async ask(): Promise<void> {
    await Promise.all(
      this.#connections.map(async ({ agent, host }) => {
        const { status } = await askHost(this.#port, host, "/path-0", agent);
        if (status !== 200) this.failed++;
        for (const socket of Object.values(agent.freeSockets).flat()) this.#watch(socket as TLSSocket);
      }),
    );
  }

  leave(): void {
    for (const { agent } of this.#connections) {
      for (const socket of Object.values(agent.freeSockets).flat()) socket?.removeAllListeners("close");
      agent.destroy();
    }
  }

  readonly #watched: WeakSet<TLSSocket> = new WeakSet();

  #watch(socket: TLSSocket): void {
    if (this.#watched.has(socket)) return;
    this.#watched.add(socket);
    socket.once("close", () => this.lost++);
  }
}
