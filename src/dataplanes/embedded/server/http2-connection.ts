import type { Socket } from "node:net";
import { ServerSession } from "../http2/server-session.ts";
import { SocketWire } from "../http2/wire.ts";
import type { Connection } from "../limits/connections.ts";
import { type Serving, serveRequest } from "../proxy/serve-request.ts";
import { H2Exchange } from "./http2-exchange.ts";

/** HTTP/2 on one connection, cleartext with prior knowledge or within TLS. */
export function serveHttp2(serving: Serving, connection: Connection, socket: Socket): void {
  const { limits } = serving;
  const wire = new SocketWire(socket);
  const session: ServerSession = new ServerSession(wire, limits, (stream, fields) => {
    const stallMs = limits.clientStallTimeoutMs;
    serveRequest(serving, new H2Exchange({ connection, session, stream, fields, stallMs }));
  });
  connection.onClosing(() => session.leave());
  wire.attach(session);
}
