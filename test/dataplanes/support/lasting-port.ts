import { createServer } from "node:net";

/** Ports of this process: nothing else may get one that is only closed for the moment. */
const given = new Set<number>();

/**
 * A free port below the range that the kernel gives to outgoing connections: it stays free while
 * nobody listens on it, so a data plane may open and close it many times.
 */
export async function lastingPort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    if (await takePort(port)) return port;
  }
  throw new Error("no free port");
}

/** False when the port is not free, or was given to somebody in this process. */
export async function takePort(port: number): Promise<boolean> {
  if (given.has(port)) return false;
  const isFree = await new Promise<boolean>((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
  if (isFree) given.add(port);
  return isFree;
}
