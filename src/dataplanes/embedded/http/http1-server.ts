import { createServer, type Server, type ServerOptions } from "node:http";
import type { Socket } from "node:net";
import type { Connections } from "../connections.ts";
import { asksForWebSocket, H1Exchange, type H1Parts, responseForUpgrade } from "./h1-exchange.ts";
import { type Serving, serveRequest } from "./serve-request.ts";

/** HTTP/1 for connections of every port of this thread; they are handed over with `emit("connection", …)`. */
export function createHttp1Server(serving: Serving, connections: Connections): Server {
  const { limits } = serving;
  const options: ServerOptions & { shouldUpgradeCallback?: typeof asksForWebSocket } = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.max(50, Math.min(1_000, limits.headerTimeoutMs / 4)),
    insecureHTTPParser: false,
    // Checked here together with several Hosts and malformed ones.
    requireHostHeader: false,
    // Upgrades to anything else are ignored, as HTTP allows: the request is served as it is.
    shouldUpgradeCallback: asksForWebSocket,
  };
  const server = createServer(options);
  // node:http would drop fields beyond its count without a word; they are counted and refused instead.
  server.maxHeadersCount = 0;

  server.on("request", (request, response) => serve({ request, response }));
  server.on("checkContinue", (request, response) => serve({ request, response, awaitsContinue: true }));
  server.on("upgrade", (request, socket, upgradeHead) => {
    socket.on("error", ignore);
    serve({ request, response: responseForUpgrade(request), upgradeHead });
  });
  server.on("connect", (request, socket) => {
    socket.on("error", ignore);
    serve({ request, response: responseForUpgrade(request) });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket;
    const connection = connections.of(socket);
    const current = connection?.current;
    // The error of a message behind the one that is being served: that one still gets its own answer, and the last.
    if (connection !== undefined && current?.received === true && connection.active > 0) {
      connection.closeGracefully();
    } else if (!socket.writable) socket.destroy();
    else if (current?.received === false && current.status !== 0) {
      // The rest of a request that was refused at once: its answer is still on the way. Any other answer is cut off.
      if (connection?.closing === true) socket.destroySoon();
      else socket.destroy();
    } else refuse(socket, statusOf(error.code));
  });
  // Timeouts of slow clients are watched only once the server believes that it listens.
  server.emit("listening");
  return server;

  function serve(parts: Omit<H1Parts, "connection">): void {
    const connection = connections.of(parts.request.socket);
    if (connection === undefined) {
      parts.request.socket.destroy();
      return;
    }
    const exchange = new H1Exchange({ connection, ...parts });
    connection.current = exchange;
    serveRequest(serving, exchange);
  }
}

/** Stops watching for timeouts, so that nothing keeps the thread alive. */
export function closeHttp1Server(server: Server): void {
  server.close();
}

function statusOf(code: string | undefined): string {
  if (code === "HPE_HEADER_OVERFLOW") return "431 Request Header Fields Too Large";
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "408 Request Timeout";
  return "400 Bad Request";
}

function refuse(socket: Socket, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy());
}

function ignore(): void {}
