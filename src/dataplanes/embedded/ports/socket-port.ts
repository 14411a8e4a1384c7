import { createServer, type Server, type Socket } from "node:net";
import type { Connections } from "../limits/connections.ts";
import type { Binding } from "../streams/tcp-port.ts";
import type { PortServer } from "./port-server.ts";

/**
 * A TCP port whose connections speak HTTP or TLS; they belong to the thread's connections and
 * outlive the port.
 */
export class SocketPort implements PortServer {
  readonly #server: Server;

  constructor(connections: Connections, maxConnections: number, accept: (socket: Socket) => void) {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) => {
      if (maxConnections > 0 && connections.size >= maxConnections) {
        socket.destroy();
        return;
      }
      connections.accept(socket);
      accept(socket);
    });
  }

  listen({ address, port, reusePort = false }: Binding): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: address, port, reusePort, backlog: 1024 }, () => {
        this.#server.off("error", reject);
        // Failing to accept (out of file descriptors) is one connection's trouble, not the port's.
        this.#server.on("error", ignore);
        resolve();
      });
    });
  }

  stop(): void {
    if (this.#server.listening) this.#server.close();
  }

  async drain(): Promise<void> {
    this.stop();
  }
}

function ignore(): void {}
