/**
 * HTTP/1 requests, bytes in, events out; knows no sockets and no time.
 *
 * The reading is strict: whatever two parsers could frame or address differently is refused (RFC
 * 9112 3.2, 6.1, 6.3). What breaks the syntax stops the parser for good; what has a clear syntax
 * and no clear meaning (several Hosts, Content-Length beside Transfer-Encoding, codings other than
 * exactly `chunked`) is told as an invalid request, of which no body is read.
 */

import { HeaderFields } from "../message/header-fields.ts";
import { isAuthority } from "../message/request-target.ts";
import { BodyDecoder, type BodySink } from "./body-decoder.ts";
import { asksToClose } from "./connection-options.ts";
import { isToken, readFields } from "./field-block.ts";
import { HeadScanner } from "./head-scanner.ts";

export interface ReceivedRequest {
  readonly method: string;
  readonly target: string;
  readonly version: "1.0" | "1.1";
  /** Undefined when the client gave none or contradicted itself. */
  readonly host: string | undefined;
  /** Without Host. */
  readonly headers: HeaderFields;
  readonly hasBody: boolean;
  readonly keepAlive: boolean;
  /** Why the message must not be served; the parser reads no further. */
  readonly invalid: string | undefined;
}

/** `onEnd` comes for a request with a body only: any other is over with its head. */
export interface RequestSink extends BodySink {
  onRequest(request: ReceivedRequest): void;
}

export interface SyntaxError {
  readonly status: 400 | 431;
}

const version = / HTTP\/1\.([01])$/;
const notVisible = /[^!-~]/;
const length = /^\d{1,15}$/;

export class RequestParser {
  readonly #sink: RequestSink;
  readonly #scanner: HeadScanner;
  readonly #body: BodyDecoder;
  /** Why nothing more is read. */
  error: SyntaxError | undefined;
  #stopped = false;

  constructor(sink: RequestSink, headerBytes: number) {
    this.#sink = sink;
    this.#scanner = new HeadScanner(headerBytes);
    this.#body = new BodyDecoder(sink, headerBytes);
    this.#scanner.begin(true);
  }

  /** Something of a request has come, and not its end. */
  get begun(): boolean {
    return !this.#stopped && (this.#body.active || this.#scanner.begun);
  }

  /**
   * Reads until the end of one request at most. The index behind what was read; see `error` before
   * going on.
   */
  read(bytes: Buffer, from: number): number {
    if (this.#stopped) return bytes.length;
    return this.#body.active ? this.#readBody(bytes, from) : this.#readHead(bytes, from);
  }

  /** Drops what still arrives. */
  stop(): void {
    this.#stopped = true;
    this.#body.stop();
  }

  #readHead(bytes: Buffer, from: number): number {
    const scanner = this.#scanner;
    const verdict = scanner.scan(bytes, from);
    if (verdict === "incomplete") return bytes.length;
    if (verdict === "too-large") return this.#fail(431);
    if (verdict === "malformed") return this.#fail(400);
    const { text, lineEnds, next } = scanner;
    scanner.begin(true);
    const request = requestOf(text, lineEnds);
    if ("status" in request) return this.#fail(request.status);
    if (request.invalid !== undefined) this.stop();
    else if (request.hasBody) this.#body.begin(framingOf(request.headers));
    this.#sink.onRequest(request);
    return next;
  }

  #readBody(bytes: Buffer, from: number): number {
    const next = this.#body.read(bytes, from);
    return next < 0 ? this.#fail(400) : next;
  }

  #fail(status: SyntaxError["status"]): number {
    this.stop();
    this.error = { status };
    return 0;
  }
}

function requestOf(text: string, lineEnds: readonly number[]): ReceivedRequest | SyntaxError {
  const line = text.slice(0, lineEnds[0] ?? 0);
  const space = line.indexOf(" ");
  const minor = version.exec(line)?.[1];
  const method = line.slice(0, space);
  const target = line.slice(space + 1, -9);
  if (minor === undefined || space < 1 || target === "" || notVisible.test(target)) return { status: 400 };
  const fields = readFields(text, lineEnds, 1);
  if (fields === undefined) return { status: 400 };
  // Any method may be known to the backend (RFC 9110, 9.1).
  if (!isToken(method)) return { status: 400 };
  const headers = new HeaderFields(fields as string[]);
  const host = headers.get("host");
  headers.remove("host");
  const invalid = contradiction(headers, host, minor);
  return {
    method,
    target,
    version: minor === "1" ? "1.1" : "1.0",
    host: invalid === undefined ? host : undefined,
    headers,
    hasBody: hasBody(headers),
    keepAlive: staysOpen(headers.get("connection"), minor),
    invalid,
  };
}

function contradiction(headers: HeaderFields, host: string | undefined, minor: string): string | undefined {
  const coding = headers.get("transfer-encoding");
  const said = headers.get("content-length");
  if (coding !== undefined) {
    if (minor === "0") return "HTTP/1.0 has no Transfer-Encoding";
    if (coding.toLowerCase() !== "chunked") return "only the chunked coding is served";
    if (said !== undefined) return "Content-Length beside Transfer-Encoding";
  }
  if (said !== undefined && !length.test(said)) return "Content-Length is not a number";
  if (host === undefined) return "there is no Host";
  return isAuthority(host) ? undefined : "Host is not one host";
}

function hasBody(headers: HeaderFields): boolean {
  if (headers.has("transfer-encoding")) return true;
  const said = headers.get("content-length");
  return said !== undefined && Number(said) !== 0;
}

function framingOf(headers: HeaderFields): number | "chunked" {
  return headers.has("transfer-encoding") ? "chunked" : Number(headers.get("content-length"));
}

function staysOpen(connection: string | undefined, minor: string): boolean {
  if (minor === "1") return !asksToClose(connection);
  if (connection === undefined) return false;
  const options = connection.toLowerCase();
  return /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/.test(options) && !options.includes("close");
}
