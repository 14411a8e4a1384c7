/**
 * TLS in front of a cleartext port of this machine, for connectors: cloudflared speaks HTTP/2, and
 * so gRPC, only where there is TLS. What is inside goes on byte by byte; the port behind tells
 * HTTP/2 from HTTP/1.1 by its first bytes.
 */
import { connect, type Socket } from "node:net";
import { createServer, type Server } from "node:tls";
import type { OriginCertificate } from "./origin-certificate.ts";

export interface OriginTlsOptions {
  readonly address: string;
  readonly port: number;
  /** The cleartext port behind. */
  readonly target: number;
  readonly certificate: OriginCertificate;
  /** Called when it is known whether the port is open: with what keeps it closed, if anything. */
  readonly onOutcome: (problem: string | undefined) => void;
}

const RETRY_MS = 1_000;

export class OriginTls {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  #retry: NodeJS.Timeout | undefined;

  constructor({ address, port, target, certificate, onOutcome }: OriginTlsOptions) {
    const { chain, key } = certificate;
    const server = createServer(
      { cert: chain, key: key.reveal(), ALPNProtocols: ["h2", "http/1.1"] },
      (client) => this.#join(client, connect({ host: address, port: target })),
    );
    this.#server = server;
    server.on("tlsClientError", () => {});
    server.on("listening", () => onOutcome(undefined));
    server.on("error", (error: NodeJS.ErrnoException) => {
      onOutcome(`port ${port} for connectors cannot be opened: ${error.code ?? "unknown"}`);
      this.#retry = setTimeout(() => server.listen(port, address), RETRY_MS);
    });
    server.listen(port, address);
  }

  #join(client: Socket, origin: Socket): void {
    for (const [from, to] of [
      [client, origin],
      [origin, client],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroySoon();
      });
      from.pipe(to);
    }
  }

  /** What is in flight may finish. */
  async close(graceMs: number): Promise<void> {
    clearTimeout(this.#retry);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const limit = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(limit);
  }
}
