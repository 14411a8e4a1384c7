/**
 * A tenant that does its worst: requests that are never answered, bodies without end, and backends
 * that are not there.
 */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

export interface FloodOptions {
  readonly port: number;
  /** The noisy tenant's name; its paths are /held, /sink and /dead. */
  readonly host: string;
  /**
   * Connections with a request that waits, with a body that goes on, and with requests to a dead
   * backend one after the other.
   */
  readonly slow: number;
  readonly bodies: number;
  readonly dead: number;
}

const PIECE: Buffer = Buffer.concat([
  Buffer.from("10000\r\n"),
  Buffer.alloc(0x10000, "x"),
  Buffer.from("\r\n"),
]);
/**
 * Between two attempts of one connection: without it, the one who floods and the one who measures
 * would compete for the processor.
 */
const PAUSE_MS = 200;

export class Flood {
  readonly #options: FloodOptions;
  readonly #sockets: Set<Socket> = new Set();
  readonly #running: Promise<void>[] = [];
  #stopped = false;
  /** Answers by status. */
  readonly answers: Map<string, number> = new Map();
  bytesSent = 0;

  constructor(options: FloodOptions) {
    this.#options = options;
    const start = (count: number, send: () => Promise<void>): void => {
      for (let at = 0; at < count; at++) this.#running.push(this.#repeat(send));
    };
    start(options.slow, () => this.#ask("/held"));
    start(options.bodies, () => this.#pour());
    start(options.dead, () => this.#ask("/dead"));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await Promise.all(this.#running);
  }

  async #repeat(send: () => Promise<void>): Promise<void> {
    while (!this.#stopped) {
      await send();
      if (!this.#stopped) await wait(PAUSE_MS);
    }
  }

  async #ask(path: string): Promise<void> {
    const socket = this.#open();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${this.#options.host}\r\n\r\n`);
    await this.#answerOf(socket);
  }

  async #pour(): Promise<void> {
    const socket = this.#open();
    socket.write(`POST /sink HTTP/1.1\r\nHost: ${this.#options.host}\r\nTransfer-Encoding: chunked\r\n\r\n`);
    let over = false;
    const answered = this.#answerOf(socket).then(() => {
      over = true;
    });
    while (!over && !this.#stopped) {
      this.bytesSent += PIECE.length;
      if (!socket.write(PIECE)) await Promise.race([once(socket, "drain").catch(() => {}), answered]);
      else await new Promise((resolve) => setImmediate(resolve));
    }
    await answered;
  }

  /** Counts the first answer, if one comes, and leaves. */
  async #answerOf(socket: Socket): Promise<void> {
    await new Promise<void>((resolve) => {
      socket.once("data", (bytes: Buffer) => {
        const status = String(bytes).slice(9, 12);
        this.answers.set(status, (this.answers.get(status) ?? 0) + 1);
        resolve();
      });
      socket.once("end", resolve).once("close", () => resolve());
    });
    socket.resetAndDestroy();
  }

  #open(): Socket {
    const socket = connect({ port: this.#options.port, host: "127.0.0.1", noDelay: true });
    this.#sockets.add(socket);
    socket.on("error", () => {}).once("close", () => this.#sockets.delete(socket));
    return socket;
  }
}
