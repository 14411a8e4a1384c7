/**
 * One stream of a connection (RFC 9113, 5): two halves that close independently, and flow control
 * in both directions.
 *
 * - Data that arrives while the reader is paused is kept here. The peer can send no more than its
 *   window, which grows only with the data that was read.
 * - Data that cannot be sent yet, because a window or the connection is full, is kept here, and the
 *   writer is asked to wait.
 */

import type { HeaderFields } from "../message/header-fields.ts";
import type { Outbox } from "./outbox.ts";
import { errorCode, MAX_FRAME_BYTES, MAX_WINDOW_BYTES } from "./protocol.ts";
import { lengthOf } from "./wire.ts";

const SMALL_BYTES = 4 * 1024;

export interface StreamHandler {
  onData(chunk: Buffer): void;
  /** Data has come that is kept, because the reader is paused. */
  onKept?(): void;
  /** The peer has sent END_STREAM. */
  onEnd(trailers: HeaderFields | undefined): void;
  /** After a `write` that asked to wait. */
  onWritable(): void;
  /** The last call. `code` is undefined if both sides have ended the stream. */
  onClosed(code: number | undefined): void;
}

/** What a stream needs of its connection. */
export interface StreamOwner {
  readonly outbox: Outbox;
  /** The socket is full for now. */
  readonly congested: boolean;
  /** The send window of the whole connection. */
  sendWindow: number;
  /** A frame with data has been sent. */
  carried(): void;
  /** Calls `flush` when there is room again. */
  wait(stream: Stream): void;
  /** Bytes of DATA that were read, for the receive window. */
  consumed(bytes: number): void;
  /** False if they cannot be sent. */
  sendTrailers(stream: Stream, trailers: HeaderFields): boolean;
  /** The stream is closed. `afterClose` is called now, or after the next flush if `soon`. */
  closed(stream: Stream, soon: boolean): void;
}

export interface StreamOptions {
  readonly id: number;
  readonly sendWindow: number;
  readonly receiveWindow: number;
  /** Opened by this side. Then a complete response stays valid after a reset by the peer. */
  readonly own: boolean;
}

export class Stream {
  readonly id: number;
  handler: StreamHandler = nobody;
  /** Bytes of the peer's Content-Length that have not arrived; negative without Content-Length. */
  expected = -1;
  /** The header of the response has not arrived yet. */
  awaitsHeader: boolean;
  readonly #owner: StreamOwner;
  readonly #own: boolean;
  readonly #fullWindow: number;
  #receiveWindow: number;
  #consumed = 0;
  #sendWindow: number;
  #paused = false;
  #delivering = false;
  #arrived: Buffer[] | undefined;
  #trailers: HeaderFields | undefined;
  #endDelivered = false;
  #remoteEnded = false;
  #pending: Buffer[] | undefined;
  #pendingAt = 0;
  #ending = false;
  #ownTrailers: HeaderFields | undefined;
  #localEnded = false;
  #dropsRest = false;
  #closed = false;
  #resetByPeer = false;
  #closeCode: number | undefined;
  #closeWaits = false;

  constructor(owner: StreamOwner, options: StreamOptions) {
    this.#owner = owner;
    this.id = options.id;
    this.#own = options.own;
    this.awaitsHeader = options.own;
    this.#sendWindow = options.sendWindow;
    this.#fullWindow = options.receiveWindow;
    this.#receiveWindow = options.receiveWindow;
  }

  get remoteEnded(): boolean {
    return this.#remoteEnded;
  }

  /** No more can be written: the stream is closed, ended or ending. */
  get localEnded(): boolean {
    return this.#localEnded || this.#ending || this.#closed;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The peer has ended its half, by END_STREAM or by RST_STREAM. */
  get peerIsDone(): boolean {
    return this.#remoteEnded || this.#resetByPeer;
  }

  // Receiving.

  /** Returns the code of a stream error, if there is one. */
  receiveData(bytes: Buffer, start: number, end: number, flowBytes: number): number | undefined {
    if (this.#remoteEnded) return errorCode.streamClosed;
    if (this.awaitsHeader) return errorCode.protocolError;
    const length = end - start;
    this.#receiveWindow -= flowBytes;
    if (this.#receiveWindow < 0) return errorCode.flowControlError;
    if (this.expected >= 0) {
      this.expected -= length;
      if (this.expected < 0) return errorCode.protocolError;
    }
    // Padding counts as read at once.
    if (flowBytes > length) this.#credit(flowBytes - length);
    if (length === 0) return undefined;
    const chunk = bytes.subarray(start, end);
    if (this.#paused) this.#keep(chunk);
    else this.#deliver(chunk);
    return undefined;
  }

  /** Returns the code of a stream error, if there is one. */
  receiveEnd(trailers: HeaderFields | undefined): number | undefined {
    if (this.#closed) return undefined;
    if (this.#remoteEnded) return errorCode.streamClosed;
    if (this.expected > 0) return errorCode.protocolError;
    this.#remoteEnded = true;
    this.#trailers = trailers;
    this.#deliverEnd();
    this.#closeIfDone(false);
    return undefined;
  }

  receiveReset(code: number): void {
    this.#resetByPeer = true;
    if (this.#own && this.#remoteEnded && !this.#closed) {
      this.#pending = undefined;
      this.#localEnded = true;
      this.#closeIfDone(false);
    } else this.#close(code, false);
  }

  /** False if the window would exceed its maximum. */
  growSendWindow(bytes: number): boolean {
    this.#sendWindow += bytes;
    if (this.#sendWindow > MAX_WINDOW_BYTES) return false;
    if (this.#sendWindow > 0 && this.#pending !== undefined) this.#owner.wait(this);
    return true;
  }

  /** Bytes that are kept for a reader that is paused. */
  get unreadBytes(): number {
    return lengthOf(this.#arrived);
  }

  /** Bytes that wait to be sent. */
  get unsentBytes(): number {
    return lengthOf(this.#pending) - (this.#pending === undefined ? 0 : this.#pendingAt);
  }

  // Reading.

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#delivering) return;
    this.#delivering = true;
    while (!this.#paused && this.#arrived !== undefined) {
      const chunk = this.#arrived.shift() as Buffer;
      if (this.#arrived.length === 0) this.#arrived = undefined;
      this.#deliver(chunk);
    }
    this.#delivering = false;
    if (this.#remoteEnded) this.#deliverEnd();
  }

  /**
   * Keeps a copy: the chunk may be overwritten. Small pieces are joined, so that the memory is
   * never much more than the window.
   */
  #keep(chunk: Buffer): void {
    this.#arrived ??= [];
    const arrived = this.#arrived;
    const before = arrived.at(-1);
    const joins = before !== undefined && Math.max(before.length, chunk.length) < SMALL_BYTES;
    if (joins) arrived[arrived.length - 1] = Buffer.concat([before, chunk]);
    else arrived.push(Buffer.from(chunk));
    this.handler.onKept?.();
  }

  #deliver(chunk: Buffer): void {
    this.handler.onData(chunk);
    this.#credit(chunk.length);
  }

  #deliverEnd(): void {
    if (this.#paused || this.#delivering || this.#arrived !== undefined || this.#endDelivered) return;
    this.#endDelivered = true;
    this.handler.onEnd(this.#trailers);
    if (this.#closeWaits) this.afterClose();
  }

  #credit(bytes: number): void {
    this.#owner.consumed(bytes);
    if (this.#remoteEnded || this.#closed) return;
    this.#consumed += bytes;
    if (this.#consumed * 2 < this.#fullWindow) return;
    this.#owner.outbox.windowUpdate(this.id, this.#consumed);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
  }

  // Sending.

  /** Copies what cannot be sent at once. False asks to wait for `onWritable`. */
  write(chunk: Buffer, endStream = false): boolean {
    if (this.localEnded) return true;
    this.#ending = endStream;
    if (this.#pending !== undefined) {
      this.#pending.push(Buffer.from(chunk));
      return false;
    }
    const sent = this.#send(chunk, 0, Number.POSITIVE_INFINITY);
    if (sent < chunk.length || (endStream && !this.#localEnded)) {
      this.#pending = [Buffer.from(chunk.subarray(sent))];
      this.#pendingAt = 0;
      this.#owner.wait(this);
      return false;
    }
    if (!this.#owner.congested || this.#localEnded) return true;
    this.#owner.wait(this);
    return false;
  }

  end(trailers?: HeaderFields): void {
    if (this.localEnded) return;
    this.#ending = true;
    this.#ownTrailers = trailers;
    if (this.#pending === undefined) this.#sendEnd();
  }

  /** Resets the stream with NO_ERROR once this side has ended, without waiting for the peer. */
  dropRest(): void {
    this.#dropsRest = true;
    if (this.#localEnded && !this.#remoteEnded) this.reset(errorCode.noError);
  }

  /** Data waits, and the stream's window has room for it. */
  get sendable(): boolean {
    return this.#pending !== undefined && (this.#sendWindow > 0 || this.#pending[0]?.length === 0);
  }

  /** Sends one frame of the waiting data. False if nothing could be sent. */
  flush(): boolean {
    const pending = this.#pending;
    if (pending === undefined) {
      if (!this.#closed) this.handler.onWritable();
      return true;
    }
    const chunk = pending[0] as Buffer;
    const before = this.#pendingAt;
    this.#pendingAt = this.#send(chunk, before, 1);
    if (this.#pendingAt < chunk.length) return this.#pendingAt > before;
    if (this.#localEnded) return true;
    this.#pendingAt = 0;
    pending.shift();
    if (pending.length > 0) return true;
    this.#pending = undefined;
    if (this.#ending) this.#sendEnd();
    else this.handler.onWritable();
    return true;
  }

  reset(code: number): void {
    if (this.#closed) return;
    this.#owner.outbox.reset(this.id, code);
    this.#close(code, true);
  }

  /** The header that was just sent had END_STREAM. */
  endedByHeader(): void {
    this.#localEnded = true;
    this.#closeIfDone(true);
  }

  /**
   * Sends what fits and returns up to where. The last frame has END_STREAM if nothing follows.
   */
  #send(chunk: Buffer, from: number, maxFrames: number): number {
    const owner = this.#owner;
    let at = from;
    for (let frames = 0; frames < maxFrames && !this.#localEnded; frames++) {
      const left = chunk.length - at;
      const room = Math.min(left, this.#sendWindow, owner.sendWindow, MAX_FRAME_BYTES);
      const last = room === left && this.#endsWith(chunk);
      if ((room <= 0 && !(last && left === 0)) || (owner.congested && !last)) break;
      owner.outbox.data(this.id, chunk, at, { end: at + room, endStream: last });
      if (room > 0) owner.carried();
      at += room;
      this.#sendWindow -= room;
      owner.sendWindow -= room;
      if (last) this.#localEnd();
      if (at === chunk.length) break;
    }
    return at;
  }

  #endsWith(chunk: Buffer): boolean {
    if (!this.#ending || this.#ownTrailers !== undefined) return false;
    return this.#pending === undefined || (this.#pending.length === 1 && this.#pending[0] === chunk);
  }

  #sendEnd(): void {
    const trailers = this.#ownTrailers;
    const sent = trailers !== undefined && this.#owner.sendTrailers(this, trailers);
    if (!sent) {
      // A response without its trailers is incomplete. A request is complete without them.
      if (trailers !== undefined && !this.#own) {
        this.reset(errorCode.internalError);
        return;
      }
      this.#owner.outbox.data(this.id, empty, 0, { end: 0, endStream: true });
    }
    this.#localEnd();
  }

  #localEnd(): void {
    this.#localEnded = true;
    this.#pending = undefined;
    if (this.#dropsRest && !this.#remoteEnded) this.reset(errorCode.noError);
    else this.#closeIfDone(true);
  }

  // Closing.

  #closeIfDone(soon: boolean): void {
    if (this.#localEnded && this.#remoteEnded) this.#close(undefined, soon);
  }

  /** The connection is gone, or the peer has reset the stream, or both sides are done. */
  #close(code: number | undefined, soon: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#closeCode = code;
    this.#pending = undefined;
    if (code !== undefined) this.#forgetArrived();
    this.#owner.closed(this, soon);
  }

  /** The connection is gone. */
  lose(code: number): void {
    if (this.#own && this.#remoteEnded && !this.#closed) {
      this.#localEnded = true;
      this.#close(undefined, false);
    } else this.#close(code, false);
  }

  #forgetArrived(): void {
    for (const chunk of this.#arrived ?? []) this.#owner.consumed(chunk.length);
    this.#arrived = undefined;
  }

  /** Calls `onClosed`, after `onEnd` if a complete response is still being read. */
  afterClose(): void {
    this.#closeWaits = this.#own && this.#closeCode === undefined && !this.#endDelivered;
    if (this.#closeWaits) return;
    const { handler } = this;
    this.handler = nobody;
    handler.onClosed(this.#closeCode);
  }
}

const empty: Buffer = Buffer.alloc(0);

const nobody: StreamHandler = {
  onData: () => {},
  onEnd: () => {},
  onWritable: () => {},
  onClosed: () => {},
};
