import type { Socket } from "node:net";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { ItemId, ListenerItem } from "../../../plan/plan.ts";
import { readClientHello } from "../streams/client-hello.ts";

/** Fatal alert 112, unrecognized_name (RFC 6066 3), in a record of its own. */
const unrecognizedName: Buffer = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

/**
 * Finds the listener of a TLS connection by its ClientHello, before anything is decided about it. A name that nobody listens for, or
 * none at all, gets an alert: no tenant's certificate is ever shown for another's name.
 */
export async function acceptTls(
  socket: Socket,
  options: { readonly port: ItemId; readonly table: RoutingTable; readonly timeoutMs: number },
  serve: (socket: Socket, listener: ListenerItem, serverName: string | undefined) => void,
): Promise<void> {
  const hello = await readClientHello(socket, { timeoutMs: options.timeoutMs });
  if ("error" in hello || socket.destroyed) {
    socket.destroy();
    return;
  }
  const listener = options.table.listenerFor(options.port, hello.serverName);
  if (listener?.tls === undefined) socket.end(unrecognizedName, () => socket.destroy());
  else serve(socket, listener, hello.serverName);
}
