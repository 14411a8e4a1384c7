/**
 * The body of an HTTP/1 message, by the framing that its head has announced (RFC 9112 6, 7).
 *
 * Chunk sizes are plain hexadecimal digits; extensions must be well formed, are bounded for the
 * whole message, and are dropped. Fields behind the last chunk are bounded like a head and may not
 * speak of framing or of the connection.
 */

import { HeaderFields } from "../message/header-fields.ts";
import { readFields } from "./field-block.ts";
import { HeadScanner } from "./head-scanner.ts";

/** A number of bytes, chunks, or everything until the connection ends. */
export type BodyFraming = number | "chunked" | "until-close";

export interface BodySink {
  onBody(piece: Buffer): void;
  onEnd(trailers: HeaderFields | undefined): void;
}

const CR = 13;
const LF = 10;
const SEMICOLON = 59;
const SIZE_DIGITS = 16;
const EXTENSION_BYTES = 16 * 1024;
const extensions = /^(?:;[!#$%&'*+\-.^_`|~\w]+(?:=(?:[!#$%&'*+\-.^_`|~\w]+|"(?:[^"\\]|\\.)*"))?)+$/s;

/** Behind a body they could change what a reader makes of the message or of the connection. */
const framing = ["content-length", "transfer-encoding", "connection", "proxy-connection", "upgrade"];

type State = "idle" | "data" | "size" | "extension" | "size-end" | "chunk-end" | "chunk-end-2" | "trailers";

export class BodyDecoder {
  readonly #sink: BodySink;
  readonly #trailers: HeadScanner;
  #state: State = "idle";
  /** Bytes of the body, or of the chunk, that are still to come. */
  #rest = 0;
  #chunked = false;
  #digits = 0;
  #extension = "";
  #extensionBytes = 0;

  constructor(sink: BodySink, trailerBytes: number) {
    this.#sink = sink;
    this.#trailers = new HeadScanner(trailerBytes);
  }

  /** A body is on its way. */
  get active(): boolean {
    return this.#state !== "idle";
  }

  begin(announced: BodyFraming): void {
    this.#chunked = announced === "chunked";
    this.#extensionBytes = 0;
    if (announced === "chunked") this.#expectSize();
    else {
      this.#rest = announced === "until-close" ? Number.POSITIVE_INFINITY : announced;
      this.#state = "data";
    }
  }

  /** Drops what is still read. */
  stop(): void {
    this.#state = "idle";
  }

  /** The index behind the last byte that belongs to the body; -1 if it is malformed. */
  read(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length && this.#state !== "idle") {
      if (this.#state === "data") at = this.#readData(bytes, at);
      else if (this.#state === "trailers") return this.#readTrailers(bytes, at);
      else if (!this.#readFrame(bytes[at++] as number)) return -1;
    }
    return at;
  }

  #readData(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#rest);
    this.#rest -= to - from;
    const piece = from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);
    const last = this.#rest === 0;
    if (last) this.#state = this.#chunked ? "chunk-end" : "idle";
    this.#sink.onBody(piece);
    if (last && !this.#chunked) this.#sink.onEnd(undefined);
    return to;
  }

  /** One byte of what is between the chunks. */
  #readFrame(byte: number): boolean {
    switch (this.#state) {
      case "size":
        return this.#readSize(byte);
      case "extension":
        return this.#readExtension(byte);
      case "size-end":
        if (this.#rest > 0) this.#state = "data";
        else {
          this.#state = "trailers";
          this.#trailers.begin(false);
        }
        return byte === LF;
      case "chunk-end":
        this.#state = "chunk-end-2";
        return byte === CR;
      default:
        this.#expectSize();
        return byte === LF;
    }
  }

  #expectSize(): void {
    this.#state = "size";
    this.#rest = 0;
    this.#digits = 0;
  }

  #readSize(byte: number): boolean {
    const digit = hexadecimal(byte);
    if (digit >= 0) {
      this.#rest = this.#rest * 16 + digit;
      return ++this.#digits <= SIZE_DIGITS && this.#rest <= Number.MAX_SAFE_INTEGER;
    }
    this.#extension = byte === SEMICOLON ? ";" : "";
    this.#state = byte === SEMICOLON ? "extension" : "size-end";
    return this.#digits > 0 && (byte === CR || byte === SEMICOLON);
  }

  #readExtension(byte: number): boolean {
    if (byte === CR) {
      this.#state = "size-end";
      return extensions.test(this.#extension);
    }
    this.#extension += String.fromCharCode(byte);
    const visible = (byte >= 32 && byte < 127) || byte === 9;
    return visible && ++this.#extensionBytes <= EXTENSION_BYTES;
  }

  #readTrailers(bytes: Buffer, from: number): number {
    const scanner = this.#trailers;
    const verdict = scanner.scan(bytes, from);
    if (verdict === "incomplete") return bytes.length;
    const fields = verdict === "complete" ? readFields(scanner.text, scanner.lineEnds, 0) : undefined;
    if (fields === undefined) return -1;
    const trailers = new HeaderFields(fields as string[]);
    if (framing.some((name) => trailers.has(name))) return -1;
    this.#state = "idle";
    this.#sink.onEnd(trailers.count === 0 ? undefined : trailers);
    return scanner.next;
  }
}

function hexadecimal(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
