import { createServer, type Server, type Socket } from "node:net";
import type { ItemId, ListenerItem } from "../../../plan/plan.ts";
import { peerOf } from "../limits/connections.ts";
import type { StreamEnd } from "./proxy-stream.ts";
import { type StreamTable, type StreamTimeouts, serveStream } from "./serve-stream.ts";

export interface TcpPortOptions {
  readonly port: ItemId;
  readonly table: StreamTable;
  readonly timeouts: StreamTimeouts;
  /** Further connections are closed at once; 0 for no bound. */
  readonly maxConnections: number;
  /** Whether the listener's tenant may have this connection; otherwise it has been closed. */
  readonly admit?: (socket: Socket, listener: ListenerItem) => boolean;
  /** Finds the address of the client before anything else is read; otherwise it is the peer's. */
  readonly arrive?: (socket: Socket, serve: (address: string) => void) => void;
  readonly random?: () => number;
  readonly onEnd?: (end: StreamEnd) => void;
}

export interface Binding {
  readonly address: string;
  readonly port: number;
  /** Several workers share the port. */
  readonly reusePort?: boolean;
}

/** A port of protocol TCP: every connection is served by the rule that stands when it arrives. */
export class TcpPort {
  readonly #options: TcpPortOptions;
  readonly #server: Server;
  readonly #stop = new AbortController();
  readonly #sockets = new Set<Socket>();
  readonly #waiting: (() => void)[] = [];

  constructor(options: TcpPortOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) =>
      this.#accept(socket),
    );
    // For node:net, a limit of 0 allows no connection.
    if (options.maxConnections > 0) this.#server.maxConnections = options.maxConnections;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Gives the port that is bound; rejects when it cannot be. */
  listen({ address, port, reusePort = false }: Binding): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: address, port, reusePort }, () => {
        this.#server.off("error", reject);
        // Failing to accept (out of file descriptors) is one connection's trouble, not the port's.
        this.#server.on("error", () => {});
        const bound = this.#server.address();
        resolve(typeof bound === "object" && bound !== null ? bound.port : port);
      });
    });
  }

  /** Stops accepting. Open connections stay open. */
  stop(): void {
    if (this.#server.listening) this.#server.close();
  }

  /** Stops accepting, and gives open connections `limitMs` to finish. */
  async drain(limitMs: number): Promise<void> {
    this.stop();
    if (this.#sockets.size === 0) return;
    const timer = setTimeout(() => this.#stop.abort(), limitMs);
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    clearTimeout(timer);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.drain(0);
  }

  #accept(socket: Socket): void {
    const { port, table, admit, arrive } = this.#options;
    const { signal } = this.#stop;
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    });
    const listener = table.listenerFor(port, undefined);
    if (listener !== undefined && admit?.(socket, listener) === false) return;
    if (arrive === undefined) {
      this.#serve(socket, peerOf(socket));
      return;
    }
    const cut = (): void => void socket.destroy();
    signal.addEventListener("abort", cut);
    socket.once("close", () => signal.removeEventListener("abort", cut));
    arrive(socket, (address) => {
      signal.removeEventListener("abort", cut);
      this.#serve(socket, address);
    });
  }

  #serve(client: Socket, address: string): void {
    const { port, table, timeouts, random = Math.random, onEnd } = this.#options;
    const { signal } = this.#stop;
    const listener = table.listenerFor(port, undefined);
    const rule = listener && table.streamRule(listener.id, undefined);
    void serveStream({ client, address, rule, table, timeouts, random, signal, onEnd });
  }
}
