import { IncomingBody } from "../http2/incoming-body.ts";
import type { RequestFields } from "../http2/message-fields.ts";
import { errorCode } from "../http2/protocol.ts";
import { codeForClient } from "../http2/reset-codes.ts";
import type { ServerSession } from "../http2/server-session.ts";
import type { Stream, StreamHandler } from "../http2/stream.ts";
import { StreamTunnel } from "../http2/stream-tunnel.ts";
import type { Connection } from "../limits/connections.ts";
import type { Exchange, SwitchedStream } from "../message/exchange.ts";
import { HeaderFields } from "../message/header-fields.ts";
import { isAuthority } from "../message/request-target.ts";
import { sideOf } from "../sockets/connect-endpoint.ts";
import { splice } from "../sockets/splice.ts";

export interface H2Parts {
  readonly connection: Connection;
  readonly session: ServerSession;
  readonly stream: Stream;
  readonly fields: RequestFields;
  /** How long the end of an answer may wait for the client; 0 is without bound. */
  readonly stallMs: number;
}

/** An HTTP/2 request on its stream. */
export class H2Exchange implements Exchange, StreamHandler {
  readonly connection: Connection;
  readonly protocol = "HTTP/2" as const;
  readonly method: string;
  readonly target: string;
  readonly authority: string | undefined;
  readonly headers: HeaderFields;
  readonly body: IncomingBody | undefined;
  readonly websocket: boolean;
  readonly invalid: string | undefined;
  status = 0;
  bytesSent = 0;
  readonly #session: ServerSession;
  readonly #stream: Stream;
  readonly #stallMs: number;
  #requestTrailers: HeaderFields | undefined;
  #trailersFollow = false;
  /** Of the answer's body, when nothing can come after it. */
  #lastByte: number | undefined;
  #onDrain: (() => void) | undefined;
  #onClose: (() => void)[] | undefined = [];
  #stalled: NodeJS.Timeout | undefined;

  constructor({ connection, session, stream, fields, stallMs }: H2Parts) {
    this.connection = connection;
    this.#session = session;
    this.#stream = stream;
    this.#stallMs = stallMs;
    // An extended CONNECT (RFC 8441) is the WebSocket handshake of HTTP/2, routed like the GET of
    // HTTP/1.1.
    this.websocket = fields.protocol === "websocket";
    this.method = this.websocket ? "GET" : fields.method;
    this.target = fields.path;
    this.headers = new HeaderFields(fields.fields);
    this.invalid = problemOf(fields);
    this.authority = this.invalid === undefined ? (fields.authority ?? fields.host) : undefined;
    this.body = stream.remoteEnded || this.websocket ? undefined : new IncomingBody(stream);
    stream.handler = this;
    if (this.websocket) stream.pause();
  }

  continue(): void {
    if (this.status !== 0 || this.#stream.closed || !this.headers.has("expect")) return;
    if (this.headers.get("expect")?.toLowerCase() !== "100-continue") return;
    this.headers.remove("expect");
    this.#session.sendHeader(this.#stream, [":status", "100"], [], false);
  }

  inform(status: number, headers: HeaderFields): void {
    if (this.status !== 0 || this.#stream.localEnded || this.#session.congested) return;
    this.#session.sendHeader(this.#stream, [":status", String(status)], headers.flat, false);
  }

  trailers(): HeaderFields | undefined {
    return this.#requestTrailers;
  }

  expectTrailers(): boolean {
    this.#trailersFollow = true;
    return true;
  }

  /** Streams cannot be confused with each other: the connection goes on. */
  closeAfterAnswer(): void {}

  answer(status: number, headers: HeaderFields, hasBody: boolean): void {
    if (this.status !== 0 || this.#stream.localEnded) return;
    this.#session.sendHeader(this.#stream, [":status", String(status)], headers.flat, !hasBody);
    this.status = status;
    if (!hasBody) this.#dropRest();
    else if (!this.#mayHaveTrailers(headers)) this.#lastByte = Number(headers.get("content-length"));
  }

  /**
   * The end goes out with the last byte where that is known: a frame less for nearly every answer.
   */
  write(chunk: Buffer): boolean {
    this.bytesSent += chunk.length;
    if (this.bytesSent !== this.#lastByte) return this.#stream.write(chunk);
    this.#stream.write(chunk, true);
    this.#finish();
    return true;
  }

  onDrain(handler: () => void): void {
    this.#onDrain = handler;
  }

  get unsentBytes(): number {
    return this.#stream.unsentBytes;
  }

  onWritable(): void {
    const waiting = this.#onDrain;
    this.#onDrain = undefined;
    waiting?.();
  }

  end(trailers?: HeaderFields): void {
    if (this.#stream.localEnded) return;
    this.#stream.end(trailers);
    this.#finish();
  }

  abort(code?: number): void {
    this.#stream.reset(codeForClient(code));
  }

  switchProtocols(headers: HeaderFields, { backend, idleMs, onWaiting }: SwitchedStream): void {
    if (this.#stream.closed) {
      backend.destroy();
      return;
    }
    headers.remove("sec-websocket-accept");
    this.#session.sendHeader(this.#stream, [":status", "200"], headers.flat, false);
    this.status = 200;
    const tunnel = new StreamTunnel(this.#stream, () => this.#close());
    splice({
      client: sideOf(tunnel),
      backend: sideOf(backend),
      idleTimeoutMs: idleMs,
      onWaiting,
      onEnd: ignore,
    });
  }

  onClose(handler: () => void): void {
    if (this.#onClose === undefined) setImmediate(handler);
    else this.#onClose.push(handler);
  }

  onData(chunk: Buffer): void {
    this.body?.add(chunk);
  }

  onKept(): void {
    this.body?.kept();
  }

  onEnd(trailers: HeaderFields | undefined): void {
    this.#requestTrailers = trailers;
    this.body?.end();
  }

  onClosed(): void {
    this.body?.close();
    this.#close();
  }

  #close(): void {
    clearTimeout(this.#stalled);
    const handlers = this.#onClose ?? [];
    this.#onClose = undefined;
    for (const handler of handlers) handler();
  }

  /**
   * An answer of known length for which none are announced goes without to a client that has not
   * asked for them (RFC 9110, 6.5.1).
   */
  #mayHaveTrailers(headers: HeaderFields): boolean {
    return this.#trailersFollow || !headers.has("content-length") || this.headers.has("te");
  }

  #finish(): void {
    this.#dropRest();
    if (this.#stream.closed || this.#stallMs === 0) return;
    this.#stalled = setTimeout(() => this.#stream.reset(errorCode.cancel), this.#stallMs);
  }

  /** After an early answer the client need not send the rest of its body. */
  #dropRest(): void {
    if (this.body === undefined) return;
    this.#stream.dropRest();
    this.body.close();
  }
}

function problemOf({ method, authority, host, protocol }: RequestFields): string | undefined {
  const named = authority ?? host;
  if (authority !== undefined && host !== undefined && host !== authority)
    return "Host contradicts :authority";
  if (named === undefined) return "there is no :authority";
  if (method !== "CONNECT" && !isAuthority(named)) return ":authority is not one host";
  if (protocol !== undefined && (protocol !== "websocket" || !isAuthority(named)))
    return "this protocol is not served";
  return undefined;
}

function ignore(): void {}
