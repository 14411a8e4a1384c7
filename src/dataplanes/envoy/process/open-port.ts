import { connect } from "node:net";

const PROBES = 100;
const PROBE_MS = 20;

/**
 * Returns when the port accepts connections, or after a time limit. The port's report does not
 * depend on it: it follows from Envoy's ACK or NACK.
 */
export async function awaitOpenPort({
  address,
  port,
}: {
  readonly address: string;
  readonly port: number;
}): Promise<void> {
  const host = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  for (let probe = 0; probe < PROBES; probe++) {
    const socket = connect({ host, port });
    const open = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
  }
}
