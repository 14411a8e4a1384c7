/**
 * Frames that a connection is about to write. They are gathered in a write buffer for one turn of
 * the event loop and then written at once. With many streams that saves most of the writes, and
 * over TLS most of the records.
 */

import { freeWriteBuffer, takeWriteBuffer, WRITE_BUFFER_BYTES } from "../sockets/write-buffers.ts";
import type { HeaderBlockWriter } from "./hpack/encoder.ts";
import { FRAME_HEAD_BYTES, frameFlag, frameType, MAX_FRAME_BYTES, preface } from "./protocol.ts";

/** Closed connections write here, and it is never read. */
const nowhere: Buffer = Buffer.allocUnsafeSlow(WRITE_BUFFER_BYTES);
let due: Outbox[] = [];

export interface OutboxOwner {
  /** `done` is called when the bytes may be overwritten. */
  write(bytes: Buffer, done: () => void): void;
  /** Everything that was gathered has been written. */
  onFlushed(): void;
}

export class Outbox {
  readonly #owner: OutboxOwner;
  #buffer: Buffer | undefined;
  #at = 0;
  #due = false;
  #closed = false;

  constructor(owner: OutboxOwner) {
    this.#owner = owner;
  }

  preface(): void {
    const buffer = this.#room(preface.length);
    buffer.set(preface, this.#at);
    this.#at += preface.length;
  }

  settings(values: readonly (readonly [id: number, value: number])[]): void {
    const buffer = this.#frame(values.length * 6, frameType.settings, 0, 0);
    for (const [id, value] of values) {
      buffer[this.#at++] = id >> 8;
      buffer[this.#at++] = id & 0xff;
      this.#uint32(buffer, value);
    }
  }

  settingsAck(): void {
    this.#frame(0, frameType.settings, frameFlag.ack, 0);
  }

  /** Eight bytes of `bytes` from `start`. */
  ping(bytes: Buffer, start: number, ack: boolean): void {
    const buffer = this.#frame(8, frameType.ping, ack ? frameFlag.ack : 0, 0);
    this.#at += bytes.copy(buffer, this.#at, start, start + 8);
  }

  goaway(lastStream: number, code: number): void {
    const buffer = this.#frame(8, frameType.goaway, 0, 0);
    this.#uint32(buffer, lastStream);
    this.#uint32(buffer, code);
  }

  reset(stream: number, code: number): void {
    this.#uint32(this.#frame(4, frameType.rstStream, 0, stream), code);
  }

  windowUpdate(stream: number, bytes: number): void {
    this.#uint32(this.#frame(4, frameType.windowUpdate, 0, stream), bytes);
  }

  /** At most `MAX_FRAME_BYTES`. */
  data(stream: number, bytes: Buffer, start: number, options: DataOptions): void {
    const { end, endStream } = options;
    const buffer = this.#frame(end - start, frameType.data, endStream ? frameFlag.endStream : 0, stream);
    this.#at += bytes.copy(buffer, this.#at, start, end);
  }

  headers(stream: number, block: HeaderBlockWriter, endStream: boolean): void {
    const { length } = block;
    let type: number = frameType.headers;
    let flags = endStream ? frameFlag.endStream : 0;
    let start = 0;
    do {
      const end = Math.min(length, start + MAX_FRAME_BYTES);
      const buffer = this.#frame(
        end - start,
        type,
        end === length ? flags | frameFlag.endHeaders : flags,
        stream,
      );
      this.#at += block.buffer.copy(buffer, this.#at, start, end);
      start = end;
      type = frameType.continuation;
      flags = 0;
    } while (start < length);
  }

  /** Writes now, not at the end of the turn. */
  flush(): void {
    const buffer = this.#buffer;
    if (buffer === undefined) return;
    const bytes = buffer.subarray(0, this.#at);
    this.#buffer = undefined;
    this.#at = 0;
    this.#owner.write(bytes, () => freeWriteBuffer(buffer));
  }

  /** The connection is closed: later frames are dropped. */
  close(): void {
    this.#closed = true;
    if (this.#buffer !== undefined) freeWriteBuffer(this.#buffer);
    this.#buffer = undefined;
    this.#at = 0;
  }

  /** Calls the owner's `onFlushed` after this turn, even if there is nothing to write. */
  schedule(): void {
    if (this.#due) return;
    this.#due = true;
    if (due.length === 0) setImmediate(flushAll);
    due.push(this);
  }

  onDue(): void {
    this.#due = false;
    this.flush();
    this.#owner.onFlushed();
  }

  #frame(length: number, type: number, flags: number, stream: number): Buffer {
    const buffer = this.#room(FRAME_HEAD_BYTES + length);
    let at = this.#at;
    buffer[at++] = length >> 16;
    buffer[at++] = (length >> 8) & 0xff;
    buffer[at++] = length & 0xff;
    buffer[at++] = type;
    buffer[at++] = flags;
    this.#at = at;
    this.#uint32(buffer, stream);
    return buffer;
  }

  #uint32(buffer: Buffer, value: number): void {
    buffer[this.#at++] = value >>> 24;
    buffer[this.#at++] = (value >>> 16) & 0xff;
    buffer[this.#at++] = (value >>> 8) & 0xff;
    buffer[this.#at++] = value & 0xff;
  }

  #room(bytes: number): Buffer {
    if (this.#closed) {
      this.#at = 0;
      return nowhere;
    }
    if (this.#buffer !== undefined && this.#at + bytes > WRITE_BUFFER_BYTES) this.flush();
    if (this.#buffer === undefined) {
      this.#buffer = takeWriteBuffer();
      this.schedule();
    }
    return this.#buffer;
  }
}

export interface DataOptions {
  readonly end: number;
  readonly endStream: boolean;
}

function flushAll(): void {
  const all = due;
  due = [];
  for (const outbox of all) outbox.onDue();
}
