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
  /** For the connection and the TLS handshake together; 0 for the system's own limit. */
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
    const late = (): void => fail(new Error("connecting took too long"));
    const timer = options.timeoutMs > 0 ? setTimeout(late, options.timeoutMs) : undefined;
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
export function sideOf(stream: Duplex, transport: Duplex = transportUnder(stream)): Side {
  if (transport !== stream) transport.on("error", ignore);
  return {
    stream,
    reset: () => {
      if (transport instanceof Socket && !(transport instanceof TLSSocket) && !isShuttingDown(stream)) {
        resetSocket(transport);
      }
      stream.destroy();
    },
  };
}

/** Lets the peer know that not everything has come. */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  if (isShuttingDown(socket)) socket.destroy();
  else socket.resetAndDestroy();
}

/**
 * Whether the end of everything is on its way to the peer. The system cannot reset a connection at
 * that moment, and Node would then never close it: it would leak, and its thread never end.
 */
function isShuttingDown({ writableEnded, writableFinished, writableLength }: Duplex): boolean {
  return writableEnded && !writableFinished && writableLength === 0;
}

/**
 * A TLS server hands out its streams only; Node keeps the socket under one in a property that may
 * go away some day.
 */
export function transportUnder(stream: Duplex): Duplex {
  const { _parent: parent } = stream as Duplex & { readonly _parent?: unknown };
  return stream instanceof TLSSocket && parent instanceof Socket ? parent : stream;
}

function ignore(): void {}
