import { FRAME_HEAD_BYTES, MAX_FRAME_BYTES } from "./protocol.ts";

export interface FrameHandler {
  /** The payload is `bytes` from `start` to `end`. It must be copied to be kept. */
  onFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void;
  /** A frame exceeds the limit. Nothing is read after it. */
  onFrameTooLarge(frame: FrameHead): void;
}

export interface FrameHead {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
}

/**
 * Splits the bytes of a connection into frames, however they arrive. At most one unfinished frame
 * is kept.
 */
export class Http2FrameReader {
  readonly #handler: FrameHandler;
  /** The unfinished frame: its header of nine bytes first, then the whole frame. */
  #partial: Buffer | undefined;
  #filled = 0;
  #stopped = false;
  readonly #frame: { type: number; flags: number; stream: number } = { type: 0, flags: 0, stream: 0 };

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Drops the rest. */
  stop(): void {
    this.#stopped = true;
    this.#partial = undefined;
  }

  read(chunk: Buffer): void {
    let at = this.#partial === undefined ? 0 : this.#complete(chunk);
    while (!this.#stopped && chunk.length - at >= FRAME_HEAD_BYTES) {
      const length = lengthAt(chunk, at);
      if (length > MAX_FRAME_BYTES) {
        this.#refuse(chunk, at);
        return;
      }
      const end = at + FRAME_HEAD_BYTES + length;
      if (end > chunk.length) break;
      this.#emit(chunk, at, end);
      at = end;
    }
    if (!this.#stopped && at < chunk.length) this.#keep(chunk, at);
  }

  /** Adds to the unfinished frame. Returns where the next one begins. */
  #complete(chunk: Buffer): number {
    let at = 0;
    while (this.#partial !== undefined && at < chunk.length) {
      const partial: Buffer = this.#partial;
      const taken = Math.min(partial.length - this.#filled, chunk.length - at);
      chunk.copy(partial, this.#filled, at, at + taken);
      this.#filled += taken;
      at += taken;
      if (this.#filled < partial.length) break;
      const length = lengthAt(partial, 0);
      if (length > MAX_FRAME_BYTES) {
        this.#refuse(partial, 0);
        return chunk.length;
      }
      if (partial.length === FRAME_HEAD_BYTES && length > 0) {
        this.#partial = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
        partial.copy(this.#partial);
      } else {
        this.#partial = undefined;
        this.#emit(partial, 0, partial.length);
      }
    }
    return at;
  }

  #keep(chunk: Buffer, at: number): void {
    const known = chunk.length - at >= FRAME_HEAD_BYTES;
    const whole = known ? FRAME_HEAD_BYTES + lengthAt(chunk, at) : FRAME_HEAD_BYTES;
    this.#partial = Buffer.allocUnsafe(whole);
    this.#filled = chunk.copy(this.#partial, 0, at);
  }

  #emit(bytes: Buffer, at: number, end: number): void {
    this.#setFrame(bytes, at);
    this.#handler.onFrame(this.#frame, bytes, at + FRAME_HEAD_BYTES, end);
  }

  #refuse(bytes: Buffer, at: number): void {
    this.stop();
    this.#setFrame(bytes, at);
    this.#handler.onFrameTooLarge(this.#frame);
  }

  #setFrame(bytes: Buffer, at: number): void {
    this.#frame.type = bytes[at + 3] as number;
    this.#frame.flags = bytes[at + 4] as number;
    this.#frame.stream = uint31At(bytes, at + 5);
  }
}

function lengthAt(bytes: Buffer, at: number): number {
  return ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
}

/** The reserved bit is ignored (RFC 9113 4.1). */
export function uint31At(bytes: Buffer, at: number): number {
  return (
    (((bytes[at] as number) & 0x7f) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}
