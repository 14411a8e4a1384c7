/** Backends that say who they are: HTTP/1.1 and HTTP/2 on one port, or the same behind TLS. */

import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  performServerHandshake,
} from "node:http2";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import { acceptCleartext } from "../../../src/dataplanes/embedded/ports/accept-cleartext.ts";
import type { TestCertificate } from "../support/certificates.ts";
import type { Backends } from "../support/http-peers.ts";
import { ANSWERED_BY, backendName, SERVING, TEAMS, WIRE } from "./names.ts";

/** Where each backend listens, by `namespace/service`. */
export async function startBackends(
  backends: Backends,
  certificate: TestCertificate,
): Promise<ReadonlyMap<string, number>> {
  const ports = new Map<string, number>();
  for (const team of TEAMS) {
    for (const service of SERVING) {
      const name = backendName(team, service);
      ports.set(name, await backends.listen(cleartext(name)));
    }
    const name = backendName(team, WIRE);
    ports.set(name, await backends.listen(secure(name, certificate)));
  }
  return ports;
}

function cleartext(name: string): Server {
  const http1: HttpServer = createServer((request, response) => answer(name, request, response));
  http1.keepAliveTimeout = 60_000;
  return createTcpServer((socket: Socket) => {
    acceptCleartext(socket, 0, (accepted, version) => {
      if (version === "http/1.1") http1.emit("connection", accepted);
      else {
        const session = performServerHandshake(accepted);
        session.on("error", () => {});
        session.on("stream", (stream) => {
          stream.on("error", () => {}).resume();
          stream.respond({ ":status": 200, [ANSWERED_BY]: name, "grpc-status": "0" }, { endStream: true });
        });
      }
    });
  });
}

function secure(name: string, { cert, key }: TestCertificate): Server {
  return createSecureServer({ cert, key, allowHTTP1: true }, (request, response) =>
    answer(name, request, response),
  );
}

function answer(
  name: string,
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
): void {
  request.resume();
  request.once("end", () => {
    response.setHeader(ANSWERED_BY, name);
    response.end();
  });
}
