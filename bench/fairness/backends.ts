/**
 * The backends of both tenants, in a process of their own: `fork` it, and it sends where they are.
 */

import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

export interface BackendPorts {
  /** Answers at once. */
  readonly echo: number;
  /** Never answers. */
  readonly held: number;
  /** Takes a body for as long as it lasts, slowly. */
  readonly sink: number;
  /** Nobody is there. */
  readonly dead: number;
}

/**
 * Behind each piece: with 5 ms the bodies take the processor, which no limit divides, and p99 is
 * beyond the bar (bench/README.md).
 */
const SINK_PAUSE_MS = 50;

if (process.send !== undefined) {
  const body = Buffer.alloc(100, "x");
  const echo = createHttp({ keepAliveTimeout: 300_000 }, (request, response) => {
    request.resume();
    response.writeHead(200, { "content-length": body.length }).end(body);
  });
  const held = tcp((socket) => socket.resume());
  const sink = tcp((socket) => {
    socket.on("data", () => {
      socket.pause();
      setTimeout(() => socket.resume(), SINK_PAUSE_MS);
    });
  });
  const dead = createServer();
  const ports: BackendPorts = {
    echo: await open(echo),
    held: await open(held),
    sink: await open(sink),
    dead: await open(dead),
  };
  dead.close();
  process.send(ports);
  process.once("disconnect", () => process.exit());
}

function tcp(serve: (socket: Socket) => void): Server {
  return createServer((socket) => serve(socket.on("error", () => {})));
}

async function open(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
