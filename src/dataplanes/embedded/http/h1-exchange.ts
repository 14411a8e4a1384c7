import { type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream";
import type { Connection } from "../connections.ts";
import type { Exchange } from "./exchange.ts";
import { checkFraming } from "./framing.ts";
import { HeaderFields } from "./header-fields.ts";

/** How long the rest of a request body is read and dropped after an early answer, so that the client gets to see the answer. */
const LINGER_MS = 2_000;

/** An answer up to this size goes out as one string with its head: one plain write, measurably cheaper than a gathered one. */
const ONE_WRITE_BYTES = 4 * 1024;

/** An HTTP/1 request on node:http. */
export class H1Exchange implements Exchange {
  readonly connection: Connection;
  readonly protocol: "HTTP/1.0" | "HTTP/1.1";
  readonly method: string;
  readonly target: string;
  readonly authority: string | undefined;
  readonly headers: HeaderFields;
  readonly body: Readable | undefined;
  readonly websocket: boolean;
  readonly invalid: string | undefined;
  status = 0;
  bytesSent = 0;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #head: Buffer | undefined;
  #awaitsContinue: boolean;
  /** Of the body, as the answer's header says; undefined: as long as it lasts. */
  #length: number | undefined;

  constructor(parts: H1Parts) {
    const { connection, request, response } = parts;
    this.connection = connection;
    this.#request = request;
    this.#response = response;
    response.on("error", ignore);
    this.#head = parts.upgradeHead;
    this.#awaitsContinue = parts.awaitsContinue ?? false;
    this.protocol = request.httpVersionMinor === 1 ? "HTTP/1.1" : "HTTP/1.0";
    this.method = request.method ?? "";
    this.target = request.url ?? "";
    const headers = HeaderFields.fromRaw(request.rawHeaders);
    const framing = checkFraming(request, headers);
    this.invalid = framing.invalid;
    this.authority = framing.authority;
    headers.remove("host");
    this.headers = headers;
    this.body = framing.hasBody ? request : undefined;
    this.websocket = parts.upgradeHead !== undefined && asksForWebSocket(request);
  }

  get received(): boolean {
    return this.#request.complete;
  }

  continue(): void {
    if (!this.#awaitsContinue || this.status !== 0) return;
    this.#awaitsContinue = false;
    this.#response.writeContinue();
  }

  trailers(): HeaderFields | undefined {
    const { rawTrailers } = this.#request;
    return rawTrailers.length === 0 ? undefined : HeaderFields.fromRaw(rawTrailers);
  }

  closeAfterAnswer(): void {
    this.connection.closeGracefully();
  }

  answer(status: number, headers: HeaderFields, hasBody: boolean): void {
    const response = this.#response;
    if (this.connection.closing || this.#awaitsContinue) response.shouldKeepAlive = false;
    const length = headers.get("content-length");
    this.#length = length === undefined ? undefined : Number(length);
    if (!hasBody && length === undefined && this.method !== "HEAD" && status !== 204 && status !== 304) {
      headers.add("content-length", "0");
      this.#length = 0;
    }
    response.writeHead(status, headers.flat as string[]);
    this.status = status;
    if (!hasBody) this.end();
  }

  write(chunk: Buffer): boolean {
    const response = this.#response;
    const whole = this.bytesSent === 0 && chunk.length === this.#length && chunk.length <= ONE_WRITE_BYTES;
    this.bytesSent += chunk.length;
    if (!whole) return response.write(chunk);
    const room = response.write(chunk.toString("latin1"), "latin1");
    // node:http would wait for more to gather; there is no more.
    response.socket?.uncork();
    return room;
  }

  onDrain(handler: () => void): void {
    this.#response.once("drain", handler);
  }

  end(trailers?: HeaderFields): void {
    const response = this.#response;
    if (trailers !== undefined && trailers.count > 0)
      response.addTrailers([...trailers] as [string, string][]);
    const early = this.body !== undefined && !this.#request.complete;
    if (!early) response.end();
    else if (!response.shouldKeepAlive && this.#length !== undefined) this.#linger(() => response.end());
    else {
      response.end();
      this.#linger(ignore);
    }
  }

  abort(): void {
    this.connection.socket.destroy();
  }

  switchProtocols(headers: HeaderFields, backend: Duplex): void {
    this.status = 101;
    const { socket } = this.#request;
    let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n";
    for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
    this.#response.detachSocket(socket);
    socket.write(`${head}\r\n`, "latin1");
    if (this.#head !== undefined && this.#head.length > 0) socket.unshift(this.#head);
    socket.setTimeout(0);
    const over = (): void => {
      this.#response.emit("close");
    };
    let open = 2;
    const ended = (): void => {
      if (--open === 0) over();
    };
    pipeline(socket, backend, ended);
    pipeline(backend, socket, ended);
  }

  onClose(handler: () => void): void {
    this.#response.once("close", handler);
  }

  /**
   * An answer before the end of the request: closing with unread bytes would reset the connection and could take the answer away from the
   * client. The rest is read and dropped for a while; the client has the whole answer meanwhile, as its length says.
   */
  #linger(done: () => void): void {
    const { socket } = this.#request;
    if (!this.#response.writableEnded) this.#response.flushHeaders();
    const limit = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    const over = (): void => {
      clearTimeout(limit);
      done();
    };
    this.#request.on("error", ignore).once("end", over).once("close", over).resume();
  }
}

export interface H1Parts {
  readonly connection: Connection;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly awaitsContinue?: boolean;
  /** The first bytes after an upgrade request. */
  readonly upgradeHead?: Buffer;
}

export function asksForWebSocket(request: IncomingMessage): boolean {
  return request.method === "GET" && request.headers.upgrade?.toLowerCase() === "websocket";
}

/** node:http hands out no response for an upgrade request; a refused one is still answered like any other. */
export function responseForUpgrade(request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(request.socket);
  response.once("finish", () => request.socket.destroySoon());
  return response;
}

function ignore(): void {}
