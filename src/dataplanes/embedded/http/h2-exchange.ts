import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream";
import type { Connection } from "../connections.ts";
import type { Exchange } from "./exchange.ts";
import { HeaderFields } from "./header-fields.ts";
import { isAuthority } from "./request-target.ts";

/** An HTTP/2 request on a stream of node:http2. */
export class H2Exchange implements Exchange {
  readonly connection: Connection;
  readonly protocol = "HTTP/2" as const;
  readonly method: string;
  readonly target: string;
  readonly authority: string | undefined;
  readonly headers: HeaderFields;
  readonly body: Readable | undefined;
  readonly websocket: boolean;
  readonly invalid: string | undefined;
  status = 0;
  bytesSent = 0;
  readonly #stream: ServerHttp2Stream;
  #requestTrailers: HeaderFields | undefined;
  #responseTrailers: HeaderFields | undefined;
  /** Of the answer's body, when nothing can come after it. */
  #lastByte: number | undefined;

  constructor(
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    raw: readonly string[],
  ) {
    this.connection = connection;
    this.#stream = stream;
    const protocol = headers[":protocol"];
    // An extended CONNECT (RFC 8441) is the WebSocket handshake of HTTP/2, routed like the GET of HTTP/1.1.
    this.websocket = headers[":method"] === "CONNECT" && protocol === "websocket";
    this.method = this.websocket ? "GET" : (headers[":method"] ?? "");
    this.target = headers[":path"] ?? "";
    this.headers = withoutPseudo(raw);
    const host = this.headers.get("host");
    this.headers.remove("host");
    const named = headers[":authority"];
    const authority = named ?? host;
    if (named !== undefined && host !== undefined && host !== named)
      this.invalid = "Host contradicts :authority";
    else if (authority === undefined) this.invalid = "there is no :authority";
    else if (!isAuthority(authority)) this.invalid = ":authority is not one host";
    else if (protocol !== undefined && !this.websocket) this.invalid = "this protocol is not served";
    else if (this.target.charCodeAt(0) !== 47 && this.target !== "*" && this.method !== "CONNECT") {
      this.invalid = ":path is not a path";
    }
    this.authority = this.invalid === undefined ? authority : undefined;
    this.body = stream.endAfterHeaders || this.websocket ? undefined : stream;
    stream.on("error", ignore);
    stream.once("trailers", (trailers: IncomingHttpHeaders) => {
      this.#requestTrailers = new HeaderFields(
        Object.entries(trailers).flatMap(([name, value]) => [name, String(value)]),
      );
    });
  }

  continue(): void {
    if (
      this.status === 0 &&
      !this.#stream.destroyed &&
      this.headers.get("expect")?.toLowerCase() === "100-continue"
    ) {
      this.headers.remove("expect");
      this.#stream.additionalHeaders({ ":status": 100 });
    }
  }

  trailers(): HeaderFields | undefined {
    return this.#requestTrailers;
  }

  /** Streams cannot be confused with each other: the connection goes on. */
  closeAfterAnswer(): void {}

  answer(status: number, headers: HeaderFields, hasBody: boolean): void {
    if (this.#stream.destroyed || this.#stream.headersSent) return;
    const head = headers.toObject();
    head[":status"] = String(status);
    const waitForTrailers = hasBody && this.#mayHaveTrailers(headers);
    this.#stream.respond(head, { endStream: !hasBody, waitForTrailers });
    this.status = status;
    if (waitForTrailers) this.#stream.once("wantTrailers", () => this.#sendTrailers());
    else if (hasBody) this.#lastByte = Number(headers.get("content-length"));
    else this.#dropRest();
  }

  /** The end goes out with the last byte where that is known: a frame less for nearly every answer. */
  write(chunk: Buffer): boolean {
    this.bytesSent += chunk.length;
    if (!this.#stream.writable) return true;
    if (this.bytesSent !== this.#lastByte) return this.#stream.write(chunk);
    this.#stream.end(chunk);
    this.#dropRest();
    return true;
  }

  onDrain(handler: () => void): void {
    this.#stream.once("drain", handler);
  }

  end(trailers?: HeaderFields): void {
    this.#responseTrailers = trailers;
    if (this.#stream.writableEnded) return;
    this.#stream.end();
    this.#dropRest();
  }

  abort(): void {
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  switchProtocols(headers: HeaderFields, backend: Duplex): void {
    if (this.#stream.destroyed) {
      backend.destroy();
      return;
    }
    headers.remove("sec-websocket-accept");
    this.#stream.respond({ ...headers.toObject(), ":status": 200 });
    this.status = 200;
    pipeline(this.#stream, backend, ignore);
    pipeline(backend, this.#stream, ignore);
  }

  onClose(handler: () => void): void {
    if (this.#stream.closed && this.#stream.destroyed) setImmediate(handler);
    else this.#stream.once("close", handler);
  }

  /** An answer of known length to a client that has not asked for trailers goes without (RFC 9110 6.5.1). */
  #mayHaveTrailers(headers: HeaderFields): boolean {
    return !headers.has("content-length") || this.headers.has("te");
  }

  #sendTrailers(): void {
    try {
      this.#stream.sendTrailers(this.#responseTrailers?.toObject() ?? {});
    } catch {
      this.abort();
    }
  }

  /** After an early answer the client need not send the rest of its body. */
  #dropRest(): void {
    const stream = this.#stream;
    if (this.body === undefined || stream.readableEnded) return;
    const stop = (): void => {
      if (!stream.readableEnded && !stream.destroyed) stream.close(constants.NGHTTP2_NO_ERROR);
    };
    if (stream.writableFinished) stop();
    else stream.once("finish", stop);
    stream.resume();
  }
}

/** Cookies may come in several fields over HTTP/2 and are one field everywhere else (RFC 9113 8.2.3). */
function withoutPseudo(raw: readonly string[]): HeaderFields {
  const fields: string[] = [];
  let cookie: string | undefined;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    const value = raw[at + 1] as string;
    if (name.charCodeAt(0) === 58) continue;
    if (name === "cookie") cookie = cookie === undefined ? value : `${cookie}; ${value}`;
    else fields.push(name, value);
  }
  if (cookie !== undefined) fields.push("cookie", cookie);
  return new HeaderFields(fields);
}

function ignore(): void {}
