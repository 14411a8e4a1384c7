import { Duplex } from "node:stream";
import type { HeaderFields } from "../message/header-fields.ts";
import { errorCode } from "./protocol.ts";
import type { Stream, StreamHandler } from "./stream.ts";

/** A stream as a two-way tunnel of bytes, for a WebSocket over HTTP/2 (RFC 8441). */
export class StreamTunnel extends Duplex implements StreamHandler {
  readonly #stream: Stream;
  readonly #closed: () => void;
  #written: (() => void) | undefined;

  /** `closed` is called when both sides have ended the stream. */
  constructor(stream: Stream, closed: () => void) {
    super({ allowHalfOpen: true });
    this.#stream = stream;
    this.#closed = closed;
    this.on("error", ignore);
    stream.handler = this;
  }

  onData(chunk: Buffer): void {
    if (!this.push(chunk)) this.#stream.pause();
  }

  onEnd(_trailers: HeaderFields | undefined): void {
    this.push(null);
  }

  onWritable(): void {
    const written = this.#written;
    this.#written = undefined;
    written?.();
  }

  onClosed(code: number | undefined): void {
    if (code !== undefined) this.destroy();
    this.#closed();
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.#stream.write(chunk)) done();
    else this.#written = done;
  }

  override _final(done: () => void): void {
    this.#stream.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stream.reset(errorCode.cancel);
    done(error);
  }
}

function ignore(): void {}
