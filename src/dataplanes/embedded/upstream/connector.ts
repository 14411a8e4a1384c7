import type { Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Endpoint } from "../../../plan/backend.ts";
import { type Link, TcpLink, TlsLink } from "./link.ts";

/** Opens connections to one endpoint, with TLS where the backend asks for it. */
export class Connector {
  readonly #endpoint: Endpoint;
  readonly #tls: ConnectionOptions | undefined;
  readonly #timeoutMs: number;
  /** The TLS session, so that the next handshake with this endpoint can resume it. */
  #session: Buffer | undefined;

  constructor(endpoint: Endpoint, tls: ConnectionOptions | undefined, timeoutMs: number) {
    this.#endpoint = endpoint;
    this.#tls = tls;
    this.#timeoutMs = timeoutMs;
  }

  connect(protocol: "http/1.1" | "h2", done: (error: Error | null, link?: Link) => void): Socket {
    const link =
      this.#tls === undefined
        ? new TcpLink(this.#endpoint)
        : new TlsLink(this.#connectTls(protocol, this.#tls));
    const { socket } = link;
    socket.setNoDelay(true).setKeepAlive(true, 60_000);
    let settled = false;
    const settle = (error: Error | null): void => {
      if (settled) return;
      settled = true;
      clearTimeout(limit);
      socket.off("error", settle);
      if (error === null) done(null, link);
      else {
        socket.on("error", ignore).destroy();
        done(error);
      }
    };
    const limit =
      this.#timeoutMs > 0
        ? setTimeout(() => settle(new Error("no connection in time")), this.#timeoutMs)
        : undefined;
    socket.once(this.#tls === undefined ? "connect" : "secureConnect", () => settle(null));
    socket.once("error", settle);
    socket.once("close", () => settle(new Error("the connection closed before it was ready")));
    return socket;
  }

  #connectTls(protocol: "http/1.1" | "h2", tls: ConnectionOptions): Socket {
    const { address, port } = this.#endpoint;
    const socket = connectTls({
      ...tls,
      host: address,
      port,
      ALPNProtocols: [protocol],
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    socket.on("session", (session) => {
      this.#session = session;
    });
    return socket;
  }
}

function ignore(): void {}
