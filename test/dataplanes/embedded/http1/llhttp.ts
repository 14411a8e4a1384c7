/**
 * node:http as an oracle: what its own parser makes of the same bytes, on a connection without a
 * network.
 */

import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { Duplex } from "node:stream";
import { HEADER_BYTES } from "./read-requests.ts";

export interface OracleRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: readonly string[];
  body: string;
  trailers: readonly string[];
  complete: boolean;
}

export interface OracleReading {
  readonly requests: readonly OracleRequest[];
  readonly error: string | undefined;
}

class Wire extends Duplex {
  override _read(): void {}
  override _write(_bytes: Buffer, _encoding: string, done: () => void): void {
    done();
  }
}

const options = {
  maxHeaderSize: HEADER_BYTES,
  insecureHTTPParser: false,
  requireHostHeader: false,
  keepAliveTimeout: 0,
  // Served as if nothing had been asked, which is what happens to all but WebSockets.
  shouldUpgradeCallback: () => false,
};

export class Llhttp {
  readonly #server: Server = createServer(options);

  constructor() {
    this.#server.maxHeadersCount = 0;
  }

  async readRequests(bytes: Buffer): Promise<OracleReading> {
    const requests: OracleRequest[] = [];
    let error: string | undefined;
    const take = (incoming: IncomingMessage, response: { end(): void }): void => {
      requests.push(observe(incoming));
      response.end();
    };
    this.#server.removeAllListeners("request").removeAllListeners("clientError");
    this.#server.removeAllListeners("checkContinue").removeAllListeners("checkExpectation");
    this.#server.on("request", take).on("checkContinue", take).on("checkExpectation", take);
    this.#server.on("clientError", (reason: NodeJS.ErrnoException) => {
      error ??= reason.code;
    });
    const wire = new Wire();
    wire.on("error", () => {});
    this.#server.emit("connection", wire);
    wire.push(bytes);
    await settled();
    wire.destroy();
    return { requests, error };
  }
}

function observe(incoming: IncomingMessage): OracleRequest {
  const seen: OracleRequest = {
    method: incoming.method ?? "",
    target: incoming.url ?? "",
    version: incoming.httpVersion,
    fields: lowered(incoming.rawHeaders),
    body: "",
    trailers: [],
    complete: false,
  };
  incoming.on("error", () => {});
  incoming.on("data", (piece: Buffer) => {
    seen.body += piece.toString("latin1");
  });
  incoming.on("end", () => {
    seen.trailers = lowered(incoming.rawTrailers);
    seen.complete = true;
  });
  return seen;
}

export interface OracleAnswer {
  readonly status: number;
  readonly fields: readonly string[];
  body: string;
  trailers: readonly string[];
  complete: boolean;
}

/**
 * The final answer that a client of node:http reads from a backend that sends this and then ends.
 */
export async function llhttpAnswer(bytes: Buffer, method: string): Promise<OracleAnswer | undefined> {
  const wire = new Wire();
  wire.on("error", () => {});
  let answer: OracleAnswer | undefined;
  const sent = request({ method, createConnection: () => wire, maxHeaderSize: HEADER_BYTES });
  sent.on("error", () => {}).on("upgrade", () => {});
  sent.on("response", (incoming) => {
    const { method: _method, target: _target, version: _version, ...seen } = observe(incoming);
    const live = { status: incoming.statusCode ?? 0, ...seen };
    answer = live;
    incoming.on("data", (piece: Buffer) => {
      live.body += piece.toString("latin1");
    });
    incoming.on("end", () => {
      live.trailers = lowered(incoming.rawTrailers);
      live.complete = incoming.complete;
    });
  });
  sent.end();
  await new Promise((resolve) => setImmediate(resolve));
  wire.push(bytes);
  wire.push(null);
  await settled();
  wire.destroy();
  return answer;
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function lowered(raw: readonly string[]): readonly string[] {
  return raw.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text));
}
