/**
 * Compresses the body of one answer on its way to the client. Each piece of the backend is flushed,
 * so that nothing waits for more to come: events reach their client as they are sent.
 *
 * A client that does not read stops the compressor, and a compressor that is full stops the
 * backend. So little more than a piece of either side is kept, besides the compressor's own memory
 * (COMPRESSOR_BYTES). Levels are low: a proxy is asked for speed.
 */

import type { Transform } from "node:stream";
import { constants, createBrotliCompress, createGzip, createZstdCompress } from "node:zlib";
import type { CompressionAlgorithm } from "../../../../plan/rule.ts";
import type { Exchange } from "../../message/exchange.ts";
import type { HeaderFields } from "../../message/header-fields.ts";

/** What an answer is written to: the exchange itself, or what stands before it. */
export type AnswerTarget = Pick<Exchange, "write" | "onDrain" | "unsentBytes" | "end">;

const MAKERS: Readonly<Record<CompressionAlgorithm, () => Transform>> = {
  brotli: () =>
    createBrotliCompress({
      flush: constants.BROTLI_OPERATION_FLUSH,
      params: { [constants.BROTLI_PARAM_QUALITY]: 3, [constants.BROTLI_PARAM_LGWIN]: 18 },
    }),
  gzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH, level: 4 }),
  zstd: () =>
    createZstdCompress({
      flush: constants.ZSTD_e_flush,
      params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_windowLog]: 17 },
    }),
};

export interface CompressorOptions {
  readonly algorithm: CompressionAlgorithm;
  /** How long the client may take nothing; 0 is without bound. */
  readonly stallMs: number;
  readonly onStalled: () => void;
  readonly onFailure: () => void;
}

export class AnswerCompressor implements AnswerTarget {
  readonly #exchange: Exchange;
  readonly #options: CompressorOptions;
  readonly #stream: Transform;
  #onDrain: (() => void) | undefined;
  #trailers: HeaderFields | undefined;
  #stallTimer: NodeJS.Timeout | undefined;

  constructor(exchange: Exchange, options: CompressorOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#stream = MAKERS[options.algorithm]();
    this.#stream
      .on("data", (piece: Buffer) => this.#pass(piece))
      .on("drain", () => this.#drained())
      .on("end", () => this.#finish())
      .on("error", options.onFailure);
  }

  /** The chunk is copied: it is read later, when another one may stand in its place. */
  write(chunk: Buffer): boolean {
    return chunk.length === 0 || this.#stream.write(Buffer.from(chunk));
  }

  onDrain(handler: () => void): void {
    this.#onDrain = handler;
  }

  get unsentBytes(): number {
    return this.#exchange.unsentBytes + this.#stream.writableLength + this.#stream.readableLength;
  }

  end(trailers?: HeaderFields): void {
    this.#trailers = trailers;
    this.#stream.end();
  }

  /** The client has gone, or the answer is cut off. */
  destroy(): void {
    clearTimeout(this.#stallTimer);
    this.#stream.destroy();
  }

  #pass(piece: Buffer): void {
    if (this.#exchange.write(piece)) return;
    this.#stream.pause();
    const { stallMs, onStalled } = this.#options;
    if (stallMs > 0) this.#stallTimer = setTimeout(onStalled, stallMs);
    this.#exchange.onDrain(() => {
      clearTimeout(this.#stallTimer);
      this.#stream.resume();
    });
  }

  #drained(): void {
    const handler = this.#onDrain;
    this.#onDrain = undefined;
    handler?.();
  }

  #finish(): void {
    try {
      this.#exchange.end(this.#trailers);
    } catch {
      this.#exchange.abort();
    }
  }
}
