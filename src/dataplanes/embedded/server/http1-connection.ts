/**
 * HTTP/1 on one connection of a client: one request after the other, the next one read when the one
 * before is answered.
 *
 *   reading   between two requests, or in the middle of a head
 *   serving   one request is being answered; its body may still arrive, and pipelined requests wait
 *   dropping  it was answered before all of its body had arrived; the rest is read and dropped, and
 *             then the next request is read
 *   leaving   the last response is written; what still arrives is read and dropped for a while,
 *             because closing with unread bytes would reset the connection, and the client could
 *             lose the response
 *   over      closed, or handed over to another protocol
 */

import type { Socket } from "node:net";
import { asksToUpgrade } from "../http1/connection-options.ts";
import { statusLine } from "../http1/head-writer.ts";
import { type ReceivedRequest, RequestParser, type RequestSink } from "../http1/request-parser.ts";
import { writePiece } from "../http1/write-piece.ts";
import type { Connection } from "../limits/connections.ts";
import type { Deadlines, Timed } from "../limits/deadlines.ts";
import type { SwitchedStream } from "../message/exchange.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import { type Serving, serveRequest } from "../proxy/serve-request.ts";
import { resetSocket, sideOf } from "../sockets/connect-endpoint.ts";
import { splice } from "../sockets/splice.ts";
import { type AnswerWriter, ServerExchange } from "./http1-exchange.ts";
import { RequestStream } from "./request-stream.ts";

type State = "reading" | "serving" | "dropping" | "leaving" | "over";
type Refusal = 400 | 408 | 417 | 431;

/** How long the rest of a request is read and dropped after an early answer. */
const LINGER_MS = 2_000;

export function serveHttp1(serving: Serving, connection: Connection, deadlines: Deadlines): void {
  new ServerConnection(serving, connection, deadlines).start();
}

class ServerConnection implements RequestSink, AnswerWriter, Timed {
  deadline: number;
  readonly #serving: Serving;
  readonly #connection: Connection;
  readonly #socket: Socket;
  readonly #deadlines: Deadlines;
  readonly #parser: RequestParser;
  #state: State = "reading";
  #exchange: ServerExchange | undefined;
  #body: RequestStream | undefined;
  /** What has come behind the request that is being served. */
  #behind: Buffer | undefined;
  /**
   * The time for a head runs from its first byte; for the first one from the beginning of the
   * connection.
   */
  #headBegun = true;
  /** The answer is complete but for what the client has not taken yet. */
  #unflushed = false;
  #clientEnded = false;

  constructor(serving: Serving, connection: Connection, deadlines: Deadlines) {
    this.#serving = serving;
    this.#connection = connection;
    this.#socket = connection.socket;
    this.#deadlines = deadlines;
    this.#parser = new RequestParser(this, serving.limits.headerBytes);
    this.deadline = deadlines.after(serving.limits.headerTimeoutMs);
  }

  start(): void {
    this.#deadlines.add(this);
    this.#socket.on("end", this.#onEnd).on("drain", this.#onDrain).on("close", this.#onClose);
    this.#socket.on("data", this.#onData);
    this.#connection.onClosing(() => {
      if (this.#state === "reading") this.#close();
    });
  }

  onDeadline(): void {
    if (this.#state === "reading" && !this.#parser.begun) this.#close();
    else if (this.#state === "reading" || this.#awaitsBody()) this.#refuse(408);
    else this.#socket.destroy();
  }

  // What the parser finds.

  onRequest(request: ReceivedRequest): void {
    const reads = request.hasBody && request.invalid === undefined;
    this.#state = "serving";
    this.deadline = reads
      ? this.#deadlines.after(this.#serving.limits.requestTimeoutMs)
      : Number.POSITIVE_INFINITY;
    this.#body = reads ? new RequestStream(() => this.#resume()) : undefined;
    const expectation = request.version === "1.1" ? request.headers.get("expect") : undefined;
    const waits = expectation?.toLowerCase() === "100-continue";
    this.#exchange = new ServerExchange({
      request,
      connection: this.#connection,
      writer: this,
      body: this.#body,
      websocket: asksForWebSocket(request),
      awaitsContinue: reads && waits,
    });
    if (expectation !== undefined && !waits) this.#refuse(417);
    else serveRequest(this.#serving, this.#exchange);
  }

  onBody(piece: Buffer): void {
    if (this.#state !== "serving" || this.#body === undefined || this.#body.destroyed) return;
    if (!this.#body.add(piece)) this.#socket.pause();
  }

  onEnd(trailers: HeaderFields | undefined): void {
    if (this.#state === "dropping") this.#readOn();
    else if (this.#state === "serving" && this.#exchange !== undefined) {
      this.#exchange.received = true;
      this.#exchange.requestTrailers = trailers;
      this.#body?.push(null);
      // Whoever reads the body slowly asks for no more of it; the next request, or the client's
      // end, must be heard all the same.
      this.#socket.resume();
      if (!this.#unflushed) this.deadline = Number.POSITIVE_INFINITY;
    }
  }

  // What the exchange asks for.

  write(front: string, bytes: Buffer | undefined, tail: string): boolean {
    if (bytes === undefined) return this.#socket.write(front, "latin1");
    return writePiece(this.#socket, front, bytes, tail);
  }

  flushSoon(exchange: ServerExchange): void {
    if (waiting.push(exchange) === 1) queueMicrotask(flushAll);
  }

  answered(exchange: ServerExchange): void {
    if (exchange !== this.#exchange) return;
    if (!this.#socket.writableNeedDrain) this.#conclude(exchange);
    else {
      this.#unflushed = true;
      this.deadline = this.#deadlines.after(this.#serving.limits.clientStallTimeoutMs);
    }
  }

  abort(): void {
    if (this.#exchange?.untilClose === true && !this.#connection.secure) resetSocket(this.#socket);
    else this.#socket.destroy();
  }

  switchTo(exchange: ServerExchange, head: string, { backend, idleMs, onWaiting }: SwitchedStream): void {
    const socket = this.#socket;
    this.#release();
    if (socket.destroyed) {
      backend.destroy();
      return;
    }
    socket.write(head, "latin1");
    if (this.#behind !== undefined) socket.unshift(this.#behind);
    splice({
      client: sideOf(socket),
      backend: sideOf(backend),
      idleTimeoutMs: idleMs,
      onWaiting,
      onEnd: () => exchange.closed(),
    });
  }

  // What the socket tells.

  readonly #onData = (bytes: Buffer): void => {
    let at = 0;
    while (at < bytes.length && this.#state !== "leaving" && this.#state !== "over") {
      if (this.#exchange?.received === true) {
        this.#hold(bytes.subarray(at));
        return;
      }
      at = this.#parser.read(bytes, at);
      if (this.#parser.error !== undefined) {
        this.#onMalformed(this.#parser.error.status);
        return;
      }
    }
    if (this.#headBegun || this.#state !== "reading" || !this.#parser.begun) return;
    this.#headBegun = true;
    this.deadline = this.#deadlines.after(this.#serving.limits.headerTimeoutMs);
  };

  /** Half-closed: a request that has come as a whole still gets its answer. */
  readonly #onEnd = (): void => {
    this.#clientEnded = true;
    if (this.#exchange?.received === true) return;
    if (this.#awaitsBody() || (this.#state === "reading" && this.#parser.begun)) this.#refuse(400);
    else if (this.#state === "serving") this.#socket.destroy();
    else this.#close();
  };

  readonly #onDrain = (): void => {
    const exchange = this.#exchange;
    if (!this.#unflushed) exchange?.drained();
    else if (exchange !== undefined) {
      this.#unflushed = false;
      this.#conclude(exchange);
    }
  };

  readonly #onClose = (): void => {
    const body = this.#body;
    this.#release();
    this.#exchange?.closed();
    body?.destroy();
  };

  #awaitsBody(): boolean {
    return this.#exchange?.received === false && this.#exchange.status === 0;
  }

  #resume(): void {
    if (this.#behind === undefined) this.#socket.resume();
  }

  /**
   * What is behind a request waits for its answer. What can never become a request makes this
   * answer the last.
   */
  #hold(bytes: Buffer): void {
    this.#behind = this.#behind === undefined ? bytes : Buffer.concat([this.#behind, bytes]);
    this.#socket.pause();
    if (this.#exchange?.websocket === true) return;
    const ahead = new RequestParser(nobody, this.#serving.limits.headerBytes);
    ahead.read(bytes, 0);
    if (ahead.error !== undefined) this.#connection.closeGracefully();
  }

  #onMalformed(status: Refusal): void {
    if (this.#state === "reading" || this.#awaitsBody()) this.#refuse(status);
    else if (this.#state === "dropping") this.#close();
    else this.#socket.destroy();
  }

  /** The answer is out. */
  #conclude(exchange: ServerExchange): void {
    const body = this.#body;
    this.#exchange = undefined;
    this.#body = undefined;
    exchange.closed();
    const stays = exchange.keepAlive && !this.#connection.closing && !this.#clientEnded;
    if (stays && exchange.received) this.#readOn();
    else {
      this.#state = exchange.received ? "reading" : "dropping";
      body?.destroy();
      if (!stays) this.#close();
      else {
        this.deadline = this.#deadlines.after(LINGER_MS);
        this.#socket.resume();
      }
    }
  }

  #readOn(): void {
    this.#state = "reading";
    this.#headBegun = false;
    this.deadline = this.#deadlines.after(this.#serving.limits.keepAliveTimeoutMs);
    const behind = this.#behind;
    if (behind === undefined) return;
    this.#behind = undefined;
    this.#socket.resume();
    this.#onData(behind);
  }

  /** Answers a malformed request with a short response, and closes the connection. */
  #refuse(status: Refusal): void {
    const exchange = this.#exchange;
    const body = this.#body;
    this.#exchange = undefined;
    this.#body = undefined;
    if (exchange !== undefined) exchange.status = status;
    exchange?.closed();
    body?.destroy();
    if (!this.#socket.writable) this.#socket.destroy();
    else {
      this.write(`${statusLine(status)}connection: close\r\ncontent-length: 0\r\n\r\n`, undefined, "");
      this.#leave();
    }
  }

  /** At once, if nothing that the client has sent is unread. */
  #close(): void {
    if (this.#state === "leaving" || this.#state === "over") {
      if (this.#clientEnded) this.#socket.destroySoon();
      return;
    }
    if ((this.#state === "dropping" || this.#behind !== undefined) && !this.#clientEnded) this.#leave();
    else {
      this.#state = "leaving";
      this.deadline = this.#deadlines.after(this.#serving.limits.clientStallTimeoutMs);
      this.#socket.destroySoon();
    }
  }

  #leave(): void {
    this.#state = "leaving";
    this.#parser.stop();
    this.deadline = this.#deadlines.after(this.#serving.limits.clientStallTimeoutMs);
    this.#socket.once("finish", () => {
      this.deadline = this.#deadlines.after(LINGER_MS);
    });
    if (this.#clientEnded) this.#socket.destroySoon();
    else this.#socket.end();
    this.#socket.resume();
  }

  /** The socket is closed, or handed over to another protocol. */
  #release(): void {
    this.#state = "over";
    this.#deadlines.delete(this);
    this.#socket.off("data", this.#onData).off("end", this.#onEnd);
    this.#socket.off("drain", this.#onDrain).off("close", this.#onClose);
  }
}

/** `Upgrade` alone asks for nothing: it must be an option of this connection (RFC 9110, 7.8). */
function asksForWebSocket({ method, headers, hasBody, version }: ReceivedRequest): boolean {
  return (
    method === "GET" &&
    !hasBody &&
    version === "1.1" &&
    headers.get("upgrade")?.toLowerCase() === "websocket" &&
    asksToUpgrade(headers.get("connection"))
  );
}

const nobody: RequestSink = { onRequest: ignore, onBody: ignore, onEnd: ignore };

/** Answers with something to send when this turn of the loop has brought all that it brings. */
const waiting: ServerExchange[] = [];

function flushAll(): void {
  for (const exchange of waiting.splice(0)) exchange.flush();
}

function ignore(): void {}
