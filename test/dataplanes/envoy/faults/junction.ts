import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { Transform } from "node:stream";

/**
 * Between Envoys and their controllers: a socket that leads to whichever controller it is told, as
 * fast as it is told.
 */
export class Junction {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  #target: string;
  #bytesPerSecond = Number.POSITIVE_INFINITY;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((client) => this.#join(client));
  }

  static async open(path: string, target: string): Promise<Junction> {
    const junction = new Junction(target);
    junction.#server.listen({ path });
    await once(junction.#server, "listening");
    return junction;
  }

  /** Whoever is connected is cut off, and comes back to the other one. */
  lead(target: string): void {
    this.#target = target;
    this.cut();
  }

  slow(bytesPerSecond: number): void {
    this.#bytesPerSecond = bytesPerSecond;
    this.cut();
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  #join(client: Socket): void {
    const server = connect({ path: this.#target });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    client.pipe(server);
    if (this.#bytesPerSecond === Number.POSITIVE_INFINITY) server.pipe(client);
    else server.pipe(throttle(this.#bytesPerSecond)).pipe(client);
  }
}

function throttle(bytesPerSecond: number): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      setTimeout(() => done(null, chunk), (chunk.length / bytesPerSecond) * 1000);
    },
  });
}
