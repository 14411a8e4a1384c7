import { dateLine, fieldLines, statusLine } from "../http1/head-writer.ts";
import type { ReceivedRequest } from "../http1/request-parser.ts";
import { SMALL_BYTES } from "../http1/write-piece.ts";
import type { Connection } from "../limits/connections.ts";
import type { Exchange, SwitchedStream } from "../message/exchange.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import type { BodySource } from "../message/request-body.ts";

/** What an exchange needs of its connection. */
export interface AnswerWriter {
  /**
   * Text, then bytes, then text, as one piece. False asks to wait until the exchange is told
   * `drained`.
   */
  write(front: string, bytes: Buffer | undefined, tail: string): boolean;
  /**
   * The exchange has text that may wait for what else comes in this turn; `flush` is called at its
   * end.
   */
  flushSoon(exchange: ServerExchange): void;
  /** The last byte has been written. */
  answered(exchange: ServerExchange): void;
  switchTo(exchange: ServerExchange, head: string, to: SwitchedStream): void;
  /** Resets the connection, so that the client sees an error. */
  abort(): void;
}

export interface ExchangeParts {
  readonly request: ReceivedRequest;
  readonly connection: Connection;
  readonly writer: AnswerWriter;
  readonly body: BodySource | undefined;
  readonly websocket: boolean;
  readonly awaitsContinue: boolean;
}

const GATHERED_BYTES = 12 * 1024;

/** An HTTP/1 request and its answer. */
export class ServerExchange implements Exchange {
  readonly connection: Connection;
  readonly protocol: "HTTP/1.0" | "HTTP/1.1";
  readonly method: string;
  readonly target: string;
  readonly authority: string | undefined;
  readonly headers: HeaderFields;
  readonly body: BodySource | undefined;
  readonly websocket: boolean;
  readonly invalid: string | undefined;
  status = 0;
  bytesSent = 0;
  /** The whole request has arrived. */
  received: boolean;
  requestTrailers: HeaderFields | undefined;
  /** Whether the client may ask again on this connection. */
  keepAlive: boolean;
  /** The response ends with the connection. */
  untilClose = false;
  readonly #writer: AnswerWriter;
  #awaitsContinue: boolean;
  /** Of the body, as the answer's header says; undefined: as long as it lasts. */
  #length: number | undefined;
  #chunked = false;
  #ended = false;
  /** Waits for more of the same turn. */
  #pending = "";
  #queued = false;
  /** The client has not taken what it was informed of. */
  #full = false;
  #onDrain: (() => void) | undefined;
  #onClose: (() => void) | undefined;

  constructor(parts: ExchangeParts) {
    const { request, body, websocket } = parts;
    const { invalid } = request;
    this.connection = parts.connection;
    this.protocol = request.version === "1.1" ? "HTTP/1.1" : "HTTP/1.0";
    this.method = request.method;
    this.target = request.target;
    this.authority = request.host;
    this.headers = request.headers;
    this.body = body;
    this.websocket = websocket;
    this.invalid = invalid;
    this.received = body === undefined && invalid === undefined;
    // A client that may have begun to speak another protocol is not heard in this one any more.
    this.keepAlive = request.keepAlive && !websocket && invalid === undefined;
    this.#writer = parts.writer;
    this.#awaitsContinue = parts.awaitsContinue;
  }

  continue(): void {
    if (!this.#awaitsContinue || this.status !== 0) return;
    this.#awaitsContinue = false;
    this.#writer.write("HTTP/1.1 100 Continue\r\n\r\n", undefined, "");
  }

  inform(status: number, headers: HeaderFields): void {
    if (this.protocol === "HTTP/1.0" || this.status !== 0 || this.#full || this.#ended) return;
    this.#full = !this.#writer.write(`${statusLine(status)}${fieldLines(headers)}\r\n`, undefined, "");
  }

  trailers(): HeaderFields | undefined {
    return this.requestTrailers;
  }

  /** Only chunks have a place for them. */
  expectTrailers(headers: HeaderFields): boolean {
    if (this.protocol === "HTTP/1.0") return false;
    headers.remove("content-length");
    return true;
  }

  closeAfterAnswer(): void {
    this.connection.closeGracefully();
  }

  answer(status: number, headers: HeaderFields, hasBody: boolean): void {
    const bodiless = !hasBody || this.method === "HEAD" || status === 204 || status === 304;
    if (status === 204) headers.remove("content-length");
    const length = headers.get("content-length");
    let head = statusLine(status) + fieldLines(headers);
    if (!headers.has("date")) head += dateLine();
    // A client may or may not send its body after a final response instead of 100 Continue.
    if (this.connection.closing || this.#awaitsContinue) this.keepAlive = false;
    if (length === undefined && !bodiless) {
      this.#chunked = this.protocol === "HTTP/1.1";
      this.untilClose = !this.#chunked;
      if (this.#chunked) head += "transfer-encoding: chunked\r\n";
      else this.keepAlive = false;
    } else if (
      length === undefined &&
      !hasBody &&
      this.method !== "HEAD" &&
      status !== 204 &&
      status !== 304
    ) {
      head += "content-length: 0\r\n";
    }
    if (!this.keepAlive) head += "connection: close\r\n";
    else if (this.protocol === "HTTP/1.0") head += "connection: keep-alive\r\n";
    this.status = status;
    if (bodiless) this.#length = 0;
    else if (length !== undefined) this.#length = Number(length);
    this.#pending = `${head}\r\n`;
    if (hasBody) this.#flushSoon();
    else this.end();
  }

  write(chunk: Buffer): boolean {
    if (this.#ended || chunk.length === 0) return true;
    this.bytesSent += chunk.length;
    if (this.#length !== undefined && this.bytesSent > this.#length) {
      this.abort();
      return true;
    }
    const front = this.#chunked ? `${this.#pending}${chunk.length.toString(16)}\r\n` : this.#pending;
    const tail = this.#chunked ? "\r\n" : "";
    if (chunk.length > SMALL_BYTES) {
      this.#pending = "";
      return this.#writer.write(front, chunk, tail);
    }
    this.#pending = front + chunk.toString("latin1") + tail;
    if (this.#pending.length > GATHERED_BYTES) return this.flush();
    this.#flushSoon();
    return true;
  }

  onDrain(handler: () => void): void {
    this.#onDrain = handler;
  }

  get unsentBytes(): number {
    return this.connection.socket.writableLength;
  }

  end(trailers?: HeaderFields): void {
    if (this.#ended) return;
    if (this.#chunked) this.#pending += `0\r\n${trailers === undefined ? "" : fieldLines(trailers)}\r\n`;
    this.#ended = true;
    if (this.#length !== undefined && this.bytesSent !== this.#length) this.abort();
    else {
      if (this.#pending !== "") this.flush();
      this.#writer.answered(this);
    }
  }

  abort(): void {
    this.#ended = true;
    // An incomplete response is a clearer error than none.
    this.flush();
    this.#writer.abort();
  }

  switchProtocols(headers: HeaderFields, to: SwitchedStream): void {
    this.status = 101;
    this.#ended = true;
    const head = `${statusLine(101)}connection: upgrade\r\nupgrade: websocket\r\n${fieldLines(headers)}\r\n`;
    this.#writer.switchTo(this, head, to);
  }

  onClose(handler: () => void): void {
    const before = this.#onClose;
    if (before === undefined) this.#onClose = handler;
    else {
      this.#onClose = () => {
        before();
        handler();
      };
    }
  }

  flush(): boolean {
    this.#queued = false;
    if (this.#pending === "") return true;
    const text = this.#pending;
    this.#pending = "";
    return this.#writer.write(text, undefined, "");
  }

  drained(): void {
    this.#full = false;
    const handler = this.#onDrain;
    this.#onDrain = undefined;
    handler?.();
  }

  /** Everything is sent, or the client has gone. */
  closed(): void {
    this.#ended = true;
    this.#pending = "";
    const handler = this.#onClose;
    this.#onClose = undefined;
    handler?.();
  }

  #flushSoon(): void {
    if (this.#queued) return;
    this.#queued = true;
    this.#writer.flushSoon(this);
  }
}
