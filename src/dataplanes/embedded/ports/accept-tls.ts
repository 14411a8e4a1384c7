import type { Socket } from "node:net";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { ItemId, ListenerItem } from "../../../plan/plan.ts";
import { readClientHello } from "../streams/client-hello.ts";

/**
 * Finds the listener of a TLS connection by its ClientHello, before anything is decided about it. A
 * name that nobody listens for, or none at all, is closed without a word: no tenant's certificate
 * is ever shown for another's name. (An alert would be kinder, but the conformance suite takes only
 * a closed connection for a refusal: TLSRouteHostnameIntersection.)
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
  if (listener?.tls === undefined) socket.destroy();
  else serve(socket, listener, hello.serverName);
}
