/**
 * What a connection is about to say: frames are gathered until the event loop has gone round once
 * and then written in one piece. With many streams that saves most of the writes, and over TLS most
 * of the records.
 */

import { freePage, PAGE_BYTES, takePage } from "../sockets/write-buffers.ts";
import type { HeaderBlockWriter } from "./hpack/encoder.ts";
import { FRAME_HEAD_BYTES, flag, frameType, MAX_FRAME_BYTES, preface } from "./protocol.ts";

/** Where closed connections write. */
const nowhere: Buffer = Buffer.allocUnsafeSlow(PAGE_BYTES);
let due: Outbox[] = [];

export interface OutboxOwner {
  /** `done` is called when the bytes may be overwritten. */
  write(bytes: Buffer, done: () => void): void;
  /** Everything that was gathered has been written. */
  onFlushed(): void;
}

export class Outbox {
  readonly #owner: OutboxOwner;
  #page: Buffer | undefined;
  #at = 0;
  #due = false;
  #closed = false;

  constructor(owner: OutboxOwner) {
    this.#owner = owner;
  }

  preface(): void {
    const page = this.#room(preface.length);
    page.set(preface, this.#at);
    this.#at += preface.length;
  }

  settings(values: readonly (readonly [id: number, value: number])[]): void {
    const page = this.#frame(values.length * 6, frameType.settings, 0, 0);
    for (const [id, value] of values) {
      page[this.#at++] = id >> 8;
      page[this.#at++] = id & 0xff;
      this.#uint32(page, value);
    }
  }

  settingsAck(): void {
    this.#frame(0, frameType.settings, flag.ack, 0);
  }

  /** Eight bytes of `bytes` from `start`. */
  ping(bytes: Buffer, start: number, ack: boolean): void {
    const page = this.#frame(8, frameType.ping, ack ? flag.ack : 0, 0);
    this.#at += bytes.copy(page, this.#at, start, start + 8);
  }

  goaway(lastStream: number, code: number): void {
    const page = this.#frame(8, frameType.goaway, 0, 0);
    this.#uint32(page, lastStream);
    this.#uint32(page, code);
  }

  reset(stream: number, code: number): void {
    this.#uint32(this.#frame(4, frameType.rstStream, 0, stream), code);
  }

  windowUpdate(stream: number, bytes: number): void {
    this.#uint32(this.#frame(4, frameType.windowUpdate, 0, stream), bytes);
  }

  /** At most a frame's worth. */
  data(stream: number, bytes: Buffer, start: number, options: DataOptions): void {
    const { end, endStream } = options;
    const page = this.#frame(end - start, frameType.data, endStream ? flag.endStream : 0, stream);
    this.#at += bytes.copy(page, this.#at, start, end);
  }

  headers(stream: number, block: HeaderBlockWriter, endStream: boolean): void {
    const { buffer, length } = block;
    let type: number = frameType.headers;
    let flags = endStream ? flag.endStream : 0;
    let start = 0;
    do {
      const end = Math.min(length, start + MAX_FRAME_BYTES);
      const page = this.#frame(end - start, type, end === length ? flags | flag.endHeaders : flags, stream);
      this.#at += buffer.copy(page, this.#at, start, end);
      start = end;
      type = frameType.continuation;
      flags = 0;
    } while (start < length);
  }

  /** Now, instead of when the event loop comes round. */
  flush(): void {
    const page = this.#page;
    if (page === undefined) return;
    const bytes = page.subarray(0, this.#at);
    this.#page = undefined;
    this.#at = 0;
    this.#owner.write(bytes, () => freePage(page));
  }

  /** Nobody listens any more. */
  close(): void {
    this.#closed = true;
    if (this.#page !== undefined) freePage(this.#page);
    this.#page = undefined;
    this.#at = 0;
  }

  /** The owner hears of the next flush even if nothing more is to be written. */
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
    const page = this.#room(FRAME_HEAD_BYTES + length);
    let at = this.#at;
    page[at++] = length >> 16;
    page[at++] = (length >> 8) & 0xff;
    page[at++] = length & 0xff;
    page[at++] = type;
    page[at++] = flags;
    this.#at = at;
    this.#uint32(page, stream);
    return page;
  }

  #uint32(page: Buffer, value: number): void {
    page[this.#at++] = value >>> 24;
    page[this.#at++] = (value >>> 16) & 0xff;
    page[this.#at++] = (value >>> 8) & 0xff;
    page[this.#at++] = value & 0xff;
  }

  #room(bytes: number): Buffer {
    if (this.#closed) {
      this.#at = 0;
      return nowhere;
    }
    if (this.#page !== undefined && this.#at + bytes > PAGE_BYTES) this.flush();
    if (this.#page === undefined) {
      this.#page = takePage();
      this.schedule();
    }
    return this.#page;
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
