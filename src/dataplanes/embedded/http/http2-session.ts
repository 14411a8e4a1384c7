import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { Connection } from "../connections.ts";
import type { Limits } from "../options.ts";
import { H2Exchange } from "./h2-exchange.ts";
import { type Serving, serveRequest } from "./serve-request.ts";

const FLOOD_WINDOW_MS = 10_000;
const WINDOW_BYTES = 256 * 1024;

/** HTTP/2 on one connection, cleartext with prior knowledge or within TLS. */
export function serveHttp2(serving: Serving, connection: Connection, socket: Socket): void {
  const { limits } = serving;
  const session = performServerHandshake(socket, {
    maxHeaderListPairs: limits.headerCount + 8,
    maxSessionInvalidFrames: 32,
    maxSessionRejectedStreams: 64,
    maxOutstandingPings: 8,
    maxSettings: 32,
    // Far above the count kept below: nghttp2's own brake ends the session with an error that says nothing.
    streamResetBurst: limits.streamResets * 100,
    streamResetRate: limits.streamResets * 100,
    settings: {
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: WINDOW_BYTES,
      enableConnectProtocol: true,
    },
  });
  session.on("error", ignore);
  session.on(
    "stream",
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      serveRequest(serving, new H2Exchange(connection, stream, headers, raw));
    },
  );
  session.setTimeout(limits.keepAliveTimeoutMs, () => {
    if (connection.active === 0) session.close();
  });
  guardAgainstFloods(session, limits);
  connection.onClosing(() => session.close());
}

/** Work that costs a client nothing and the server something is counted; who overdoes it is told to calm down and closed. */
function guardAgainstFloods(session: ServerHttp2Session, limits: Limits): void {
  const pings = new Allowance(limits.pings);
  const settings = new Allowance(limits.settings);
  const resets = new Allowance(limits.streamResets);
  const spend = (allowance: Allowance): void => {
    if (!allowance.spend()) {
      session.destroy(new Error("too many frames without work"), constants.NGHTTP2_ENHANCE_YOUR_CALM);
    }
  };
  session.on("ping", () => spend(pings));
  session.on("remoteSettings", () => spend(settings));
  session.on("stream", (stream: ServerHttp2Stream) => {
    stream.once("aborted", () => spend(resets));
  });
}

class Allowance {
  readonly #limit: number;
  #windowEnd = 0;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  spend(): boolean {
    const now = Date.now();
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + FLOOD_WINDOW_MS;
      this.#spent = 0;
    }
    return ++this.#spent <= this.#limit || this.#limit === 0;
  }
}

function ignore(): void {}
