/** The client's side of a connection: sends requests, as many at a time as the backend allows. */

import type { Limits } from "../limits/options.ts";
import { HeaderFields } from "../message/header-fields.ts";
import type { BlockHead } from "./header-block.ts";
import {
  type FieldBounds,
  ResponseFields,
  TrailerFields,
  unread,
  WRITTEN_FIELD_BYTES,
} from "./message-fields.ts";
import { errorCode, MAX_STREAM_ID, setting } from "./protocol.ts";
import { Session } from "./session.ts";
import type { Stream, StreamHandler } from "./stream.ts";
import type { Wire } from "./wire.ts";

const STREAM_WINDOW_BYTES = 256 * 1024;
/**
 * So large that slow readers of some streams never block the others: each stream is limited by its
 * own window.
 */
const CONNECTION_WINDOW_BYTES = 64 * 1024 * 1024;
const STREAMS_PER_CONNECTION = 256;

export interface AnswerHandler extends StreamHandler {
  /** Whether `onAnswer` has been called. */
  readonly answered: boolean;
  /** An interim response (1xx). */
  onInterim(status: number, headers: HeaderFields): void;
  /** The final response; called once. */
  onAnswer(status: number, headers: HeaderFields, endStream: boolean): void;
}

export interface ClientSessionEvents {
  /** The backend's settings have arrived: it may accept requests now. */
  onReady(): void;
  /** A stream has ended: there may be room for another. */
  onRoom(): void;
  /** The connection is gone. */
  onGone(): void;
}

export class ClientSession extends Session {
  readonly #events: ClientSessionEvents;
  readonly #fieldBounds: FieldBounds;
  readonly #handlers: Map<number, AnswerHandler> = new Map();
  readonly #heads: Set<number> = new Set();
  protected readonly lastPeerStream = 0;
  #nextStream = 1;
  #leaving = false;

  constructor(wire: Wire, limits: Limits, events: ClientSessionEvents) {
    super(wire, {
      isServer: false,
      streamWindow: STREAM_WINDOW_BYTES,
      connectionWindow: CONNECTION_WINDOW_BYTES,
      headerBytes: limits.headerBytes,
      pings: limits.pings,
      settings: limits.settings,
      // No limit: a backend can only reset streams that we have opened.
      streamResets: 0,
    });
    this.#events = events;
    // Counted as for HTTP/1.1, so that the limit is the same for both protocols.
    const { headerBytes } = limits;
    this.#fieldBounds = { headerBytes, headerCount: 0, fieldBytes: WRITTEN_FIELD_BYTES };
    this.outbox.preface();
    this.sendFirstSettings([
      [setting.enablePush, 0],
      [setting.initialWindowSize, STREAM_WINDOW_BYTES],
      // HTTP/2 counts 32 bytes more for each field, HTTP/1.1 only four.
      [setting.maxHeaderListSize, headerBytes * 2],
    ]);
  }

  /** Whether another request can be sent now. */
  get hasRoom(): boolean {
    if (!this.settingsReceived || this.#leaving || this.over || this.#nextStream > MAX_STREAM_ID)
      return false;
    return this.streams.size < Math.min(this.peer.maxConcurrentStreams, STREAMS_PER_CONNECTION);
  }

  /** Whether no more requests can be sent, now or later. */
  get isLeaving(): boolean {
    return this.#leaving || this.over || this.#nextStream > MAX_STREAM_ID;
  }

  get openStreams(): number {
    return this.streams.size;
  }

  /** Sends a request; only if `hasRoom`. Throws without any effect if a field cannot be sent. */
  request(pseudo: readonly string[], fields: readonly string[], options: RequestOptions): Stream {
    const id = this.#nextStream;
    const stream = this.openStream(id, true);
    try {
      this.sendHeader(stream, pseudo, fields, options.endStream);
    } catch (error) {
      this.streams.delete(id);
      throw error;
    }
    this.#nextStream = id + 2;
    stream.handler = options.handler;
    this.#handlers.set(id, options.handler);
    // A response to HEAD may have a Content-Length, and has no body.
    if (options.isHead) this.#heads.add(id);
    return stream;
  }

  leave(): void {
    if (this.#leaving || this.over) return;
    this.#leaving = true;
    this.outbox.goaway(0, errorCode.noError);
    if (this.streams.size === 0) this.finish();
  }

  protected isIdle(stream: number): boolean {
    return stream % 2 === 0 || stream >= this.#nextStream;
  }

  protected onHeaderBlock(
    { stream: id, endStream }: BlockHead,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    const stream = this.streams.get(id);
    const handler = this.#handlers.get(id);
    if (stream === undefined || handler === undefined) {
      if (this.isIdle(id)) this.fail(errorCode.protocolError);
      else if (this.decode(unread, bytes, start, end)) this.idleFrame();
      return;
    }
    const sink = handler.answered
      ? new TrailerFields(this.#fieldBounds)
      : new ResponseFields(this.#fieldBounds);
    if (!this.decode(sink, bytes, start, end)) return;
    const problem =
      sink instanceof ResponseFields
        ? this.#onAnswer(stream, handler, { fields: sink, endStream })
        : endStream && !sink.malformed && !sink.tooLarge
          ? stream.receiveEnd(new HeaderFields(sink.fields))
          : errorCode.protocolError;
    if (problem !== undefined) this.resetBroken(stream, problem);
  }

  #onAnswer(
    stream: Stream,
    handler: AnswerHandler,
    { fields, endStream }: { readonly fields: ResponseFields; readonly endStream: boolean },
  ): number | undefined {
    if (fields.tooLarge || !fields.isComplete) return errorCode.protocolError;
    const { status, contentLength } = fields;
    if (status < 200) {
      this.idleFrame();
      if (endStream) return errorCode.protocolError;
      handler.onInterim(status, new HeaderFields(fields.fields));
      return undefined;
    }
    const bodiless = status === 204 || status === 304 || this.#heads.has(stream.id);
    if (endStream && !bodiless && contentLength > 0) return errorCode.protocolError;
    stream.expected = bodiless ? 0 : contentLength;
    stream.awaitsHeader = false;
    handler.onAnswer(status, new HeaderFields(fields.fields), endStream);
    return endStream ? stream.receiveEnd(undefined) : undefined;
  }

  protected onSettings(): void {
    this.#events.onReady();
  }

  protected onPong(): void {}

  /** Streams after the last one were not processed: they can be retried on another connection. */
  protected onGoaway(lastStream: number): void {
    this.#leaving = true;
    for (const stream of [...this.streams.values()]) {
      if (stream.id > lastStream) stream.receiveReset(errorCode.refusedStream);
    }
    if (this.streams.size === 0) this.finish();
  }

  override closed(stream: Stream, soon: boolean): void {
    this.#handlers.delete(stream.id);
    if (this.#heads.size > 0) this.#heads.delete(stream.id);
    super.closed(stream, soon);
  }

  protected onStreamClosed(): void {
    if (this.#leaving && this.streams.size === 0) this.finish();
    else this.#events.onRoom();
  }

  protected onStopped(): void {
    this.#events.onGone();
  }
}

export interface RequestOptions {
  readonly handler: AnswerHandler;
  readonly endStream: boolean;
  readonly isHead: boolean;
}
