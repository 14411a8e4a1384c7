import { lastingPort, takePort } from "../../support/lasting-port.ts";

/** Two neighbouring ports that nobody listens on, and nobody else gets. */
export async function closedPair(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = await lastingPort();
    if (await takePort(port + 1)) return port;
  }
  throw new Error("no two neighbouring ports are free");
}
