import { connect, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, TLSSocket } from "node:tls";
import type { Endpoint } from "../../../plan/backend.ts";

/** One end of a proxied connection. */
export interface Side {
  readonly stream: Duplex;
  /** Ends it so that the peer cannot take it for a regular end. */
  reset(): void;
}

export interface ConnectOptions {
  readonly endpoint: Endpoint;
  readonly tls?: ConnectionOptions | undefined;
  /** For the connection and the TLS handshake together. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export function connectEndpoint(options: ConnectOptions): Promise<Side> {
  const { endpoint, tls, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Error("aborted"));
    const socket = connect({
      host: endpoint.address,
      port: endpoint.port,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
    });
    let stream = socket;

    const done = (): void => {
      release();
      resolve(sideOf(stream, socket));
    };
    const fail = (error: Error): void => {
      release();
      // Destroying can still report the loss of what was in flight.
      socket.on("error", ignore);
      stream.on("error", ignore);
      stream.destroy();
      socket.destroy();
      reject(error);
    };
    const closed = (): void => fail(new Error("closed while connecting"));
    const aborted = (): void => fail(new Error("aborted"));
    const timer = setTimeout(() => fail(new Error("connecting took too long")), options.timeoutMs);
    const release = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", aborted);
      socket.off("error", fail).off("connect", connected).off("close", closed);
      if (stream !== socket) stream.off("error", fail).off("secureConnect", done).off("close", closed);
    };
    const connected = (): void => {
      if (tls === undefined) {
        done();
        return;
      }
      stream = connectTls({ ...tls, socket });
      stream.on("error", fail).on("close", closed).on("secureConnect", done);
    };
    socket.on("error", fail).on("close", closed).on("connect", connected);
    signal.addEventListener("abort", aborted);
  });
}

/** `transport` is the TCP socket under a TLS stream: only it can be reset. */
export function sideOf(stream: Duplex, transport: Duplex = stream): Side {
  if (transport !== stream) transport.on("error", ignore);
  return {
    stream,
    reset: () => {
      if (transport instanceof Socket && !(transport instanceof TLSSocket) && !transport.destroyed) {
        transport.resetAndDestroy();
      }
      stream.destroy();
    },
  };
}

function ignore(): void {}
