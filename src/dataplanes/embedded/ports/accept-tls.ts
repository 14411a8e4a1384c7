import type { Socket } from "node:net";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { ItemId, ListenerItem } from "../../../plan/plan.ts";
import type { HandshakeResult } from "../../traffic/traffic-numbers.ts";
import { CLOSED_EARLY, readClientHello } from "../streams/client-hello.ts";

/**
 * Finds the listener of a TLS connection by its ClientHello. A connection with an unknown server
 * name, or with none, is closed without an alert: no tenant's certificate is ever shown for
 * another's name. (An alert would be better, but the conformance test TLSRouteHostnameIntersection
 * accepts only a closed connection.)
 */
export async function acceptTls(
  socket: Socket,
  options: {
    readonly port: ItemId;
    readonly table: RoutingTable;
    readonly timeoutMs: number;
    readonly onRefused?: (result: HandshakeResult) => void;
  },
  serve: (socket: Socket, listener: ListenerItem, serverName: string | undefined) => void,
): Promise<void> {
  const hello = await readClientHello(socket, { timeoutMs: options.timeoutMs });
  if ("error" in hello || socket.destroyed) {
    if ("error" in hello && hello.error !== CLOSED_EARLY) options.onRefused?.("failed");
    socket.destroy();
    return;
  }
  const listener = options.table.listenerFor(options.port, hello.serverName);
  if (listener?.tls === undefined) {
    options.onRefused?.("unknown_name");
    socket.destroy();
  } else serve(socket, listener, hello.serverName);
}
