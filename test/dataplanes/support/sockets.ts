/**
 * Real sockets for the tests of the data planes: everything that was opened is closed by
 * `release()`.
 */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class Sockets {
  readonly #servers: Server[] = [];
  readonly #sockets: Socket[] = [];

  /** A TCP server on a free loopback port; half-open connections stay open. */
  async serve(onConnection: (socket: Socket) => void): Promise<number> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.keep(socket);
      onConnection(socket);
    });
    this.#servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  async connect(port: number): Promise<Socket> {
    const socket = this.keep(connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true }));
    await once(socket, "connect");
    return socket;
  }

  keep(socket: Socket): Socket {
    this.#sockets.push(socket);
    socket.on("error", () => {});
    return socket;
  }

  async release(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(
      this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    );
  }
}

export async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Numbers in [0, 1) that are the same in every run. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
