import { type AddressInfo, createServer, type Server } from "node:net";

/** Two neighbouring ports that nobody listens on. */
export async function closedPair(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const first = createServer();
    const second = createServer();
    try {
      const port = await listenOn(first, 0);
      await listenOn(second, port + 1);
      return port;
    } catch {
      // The neighbour is taken; another pair may be free.
    } finally {
      await Promise.all([first, second].map((server) => new Promise((resolve) => server.close(resolve))));
    }
  }
  throw new Error("no two neighbouring ports are free");
}

async function listenOn(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}
