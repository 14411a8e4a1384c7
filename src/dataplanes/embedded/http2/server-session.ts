/**
 * The server's side of a connection: receives requests, limited in number, size and time.
 *
 * Graceful shutdown has two steps (RFC 9113, 6.8). The first GOAWAY, with the largest stream id,
 * asks the client to open no more streams. After a round trip, the second GOAWAY names the last
 * stream that is served.
 */

import type { Limits } from "../limits/options.ts";
import { HeaderFields } from "../message/header-fields.ts";
import type { BlockHead } from "./header-block.ts";
import {
  type FieldBounds,
  LISTED_FIELD_BYTES,
  RequestFields,
  TrailerFields,
  unread,
} from "./message-fields.ts";
import { errorCode, MAX_STREAM_ID, preface, setting } from "./protocol.ts";
import { Session } from "./session.ts";
import type { Stream } from "./stream.ts";
import type { Wire } from "./wire.ts";

const STREAM_WINDOW_BYTES = 256 * 1024;
const CONNECTION_WINDOW_BYTES = 1024 * 1024;
/**
 * Pseudo-headers, and a few fields more than a request may have, so that a request with too many
 * gets a response (431) and no stream error.
 */
const COUNT_RESERVE = 8;
const LEAVE_MS = 1_000;
/** More streams than any client has open at a time: no more frames of older ones can arrive. */
const REMEMBERED_STREAMS = 1_024;
/**
 * Skipped stream ids that are remembered. A late frame for a skipped id is PROTOCOL_ERROR. Beyond
 * these it is STREAM_CLOSED, and otherwise treated the same.
 */
const REMEMBERED_GAPS = 16;
const leaving: Buffer = Buffer.from("leaving ", "latin1");

export class ServerSession extends Session {
  readonly #limits: Limits;
  readonly #onRequest: (stream: Stream, fields: RequestFields) => void;
  readonly #fieldBounds: FieldBounds;
  protected lastPeerStream = 0;
  /** The last stream that the client has opened, also one that came too late to be served. */
  #lastHeard = 0;
  /** Streams that this side ended first: frames of the client may still arrive. */
  readonly #endedHere: Set<number> = new Set();
  /** Ranges of stream ids that the client has skipped: from the first one to the next one used. */
  readonly #gaps: [from: number, to: number][] = [];
  #leaving = false;
  #left = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #openedAt: number = Date.now();
  #idleSince: number = this.#openedAt;
  #prefaceRead = 0;
  #headerSince = 0;
  #congestedSince = 0;

  constructor(wire: Wire, limits: Limits, onRequest: (stream: Stream, fields: RequestFields) => void) {
    super(wire, {
      isServer: true,
      streamWindow: STREAM_WINDOW_BYTES,
      connectionWindow: CONNECTION_WINDOW_BYTES,
      headerBytes: limits.headerBytes,
      pings: limits.pings,
      settings: limits.settings,
      streamResets: limits.streamResets,
    });
    this.#limits = limits;
    this.#onRequest = onRequest;
    this.#fieldBounds = {
      headerBytes: limits.headerBytes,
      headerCount: limits.headerCount + COUNT_RESERVE,
      fieldBytes: LISTED_FIELD_BYTES,
    };
    this.sendFirstSettings([
      [setting.maxConcurrentStreams, limits.concurrentStreams || MAX_STREAM_ID],
      [setting.maxHeaderListSize, limits.headerBytes],
      [setting.initialWindowSize, STREAM_WINDOW_BYTES],
      [setting.enableConnectProtocol, 1],
    ]);
    this.#arm();
  }

  override read(chunk: Buffer): void {
    let rest = chunk;
    if (this.#prefaceRead < preface.length) {
      const taken = Math.min(preface.length - this.#prefaceRead, chunk.length);
      if (chunk.compare(preface, this.#prefaceRead, this.#prefaceRead + taken, 0, taken) !== 0) {
        this.fail(errorCode.protocolError);
        return;
      }
      this.#prefaceRead += taken;
      rest = chunk.subarray(taken);
    }
    if (rest.length > 0) super.read(rest);
  }

  /** Starts a graceful shutdown: the connection ends with its last stream. */
  leave(): void {
    if (this.#leaving || this.over) return;
    this.#leaving = true;
    this.outbox.goaway(MAX_STREAM_ID, errorCode.noError);
    this.outbox.ping(leaving, 0, false);
    setTimeout(() => this.onPong(), LEAVE_MS).unref();
  }

  protected onPong(): void {
    if (!this.#leaving || this.#left || this.over) return;
    this.#left = true;
    this.outbox.goaway(this.lastPeerStream, errorCode.noError);
    if (this.streams.size === 0) this.finish();
  }

  protected isIdle(stream: number): boolean {
    return stream % 2 === 0 || stream > this.#lastHeard;
  }

  protected onHeaderBlock(head: BlockHead, bytes: Buffer, start: number, end: number): void {
    const { stream: id, endStream } = head;
    const known = this.streams.get(id);
    if (known !== undefined) this.#onTrailers(known, endStream, { bytes, start, end });
    else if (id % 2 === 0) this.fail(errorCode.protocolError);
    else if (id <= this.#lastHeard || this.#left) {
      this.#lastHeard = Math.max(id, this.#lastHeard);
      if (this.decode(unread, bytes, start, end)) this.lateFrame(id);
    } else {
      if (id > this.#lastHeard + 2 && this.#gaps.length < REMEMBERED_GAPS) {
        this.#gaps.push([this.#lastHeard + 1, id]);
      }
      this.lastPeerStream = id;
      this.#lastHeard = id;
      const fields = new RequestFields(this.#fieldBounds);
      if (this.decode(fields, bytes, start, end)) this.#open(id, fields, endStream);
    }
  }

  /**
   * A frame that arrives after this side has ended the stream is no error. One that arrives after
   * the client itself has ended the stream is a connection error (RFC 9113, 5.1).
   */
  protected override lateFrame(id: number): boolean {
    if (this.#left || this.#endedHere.has(id)) return this.idleFrame();
    const leftOut = this.#gaps.some(([from, to]) => id >= from && id < to);
    this.fail(leftOut ? errorCode.protocolError : errorCode.streamClosed);
    return false;
  }

  override closed(stream: Stream, soon: boolean): void {
    if (!stream.peerIsDone) this.#rememberEnded(stream.id);
    super.closed(stream, soon);
  }

  #rememberEnded(id: number): void {
    this.#endedHere.add(id);
    if (this.#endedHere.size <= REMEMBERED_STREAMS) return;
    const oldest = this.#endedHere.values().next().value;
    if (oldest !== undefined) this.#endedHere.delete(oldest);
  }

  #refuseStream(id: number, code: number, endStream: boolean): void {
    if (!endStream) this.#rememberEnded(id);
    if (this.spendReset()) this.outbox.reset(id, code);
  }

  #open(id: number, fields: RequestFields, endStream: boolean): void {
    const { concurrentStreams, requestTimeoutMs } = this.#limits;
    if (concurrentStreams > 0 && this.streams.size >= concurrentStreams) {
      this.#refuseStream(id, errorCode.refusedStream, endStream);
      return;
    }
    if (!fields.tooLarge && !fields.isComplete(endStream)) {
      this.#refuseStream(id, errorCode.protocolError, endStream);
      return;
    }
    const stream = this.openStream(id, false);
    stream.expected = fields.contentLength;
    if (endStream) stream.receiveEnd(undefined);
    if (fields.tooLarge) {
      this.sendHeader(stream, [":status", "431"], ["content-length", "0"], true);
      stream.dropRest();
      this.spendReset();
      return;
    }
    if (!endStream && requestTimeoutMs > 0 && fields.protocol === undefined) {
      setTimeout(() => {
        if (!stream.remoteEnded) stream.reset(errorCode.cancel);
      }, requestTimeoutMs).unref();
    }
    this.#onRequest(stream, fields);
  }

  #onTrailers(
    stream: Stream,
    endStream: boolean,
    block: { readonly bytes: Buffer; readonly start: number; readonly end: number },
  ): void {
    const fields = new TrailerFields(this.#fieldBounds);
    if (!this.decode(fields, block.bytes, block.start, block.end)) return;
    const fine = endStream && !fields.malformed && !fields.tooLarge;
    const problem = fine
      ? stream.receiveEnd(new HeaderFields(fields.fields))
      : stream.remoteEnded
        ? errorCode.streamClosed
        : errorCode.protocolError;
    if (problem !== undefined) this.resetBroken(stream, problem);
  }

  protected onSettings(): void {}

  /** The client opens no more streams. Those that are open get their responses. */
  protected onGoaway(): void {
    if (this.streams.size === 0) this.finish();
    else this.#left = true;
  }

  protected onStreamClosed(): void {
    if (this.streams.size > 0) return;
    if (this.#left) this.finish();
    else this.#idleSince = Date.now();
  }

  protected onStopped(): void {
    clearTimeout(this.#timer);
  }

  protected override onHeaderBegun(): void {
    this.#headerSince = Date.now();
    this.#arm();
  }

  protected override onCongestion(): void {
    if (!this.congested) return;
    this.#congestedSince = Date.now();
    this.#arm();
  }

  /** One timer for the earliest of all time limits. It is set again if none is over. */
  #arm(): void {
    clearTimeout(this.#timer);
    const deadline = this.#deadline();
    if (deadline === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#onTimer(), Math.max(1, deadline - Date.now()));
  }

  #onTimer(): void {
    if (this.over) return;
    if (this.#deadline() <= Date.now()) {
      if (this.settingsReceived && !this.headerOpen && !this.congested) this.leave();
      else this.fail(errorCode.enhanceYourCalm);
    }
    if (!this.over) this.#arm();
  }

  #deadline(): number {
    const { headerTimeoutMs, keepAliveTimeoutMs, clientStallTimeoutMs } = this.#limits;
    const limits: number[] = [];
    const add = (since: number, ms: number): unknown => ms > 0 && limits.push(since + ms);
    if (!this.settingsReceived) add(this.#openedAt, headerTimeoutMs);
    if (this.headerOpen) add(this.#headerSince, headerTimeoutMs);
    if (this.congested) add(this.#congestedSince, clientStallTimeoutMs);
    // With open streams the idle time has not begun.
    if (!this.#leaving) add(this.streams.size > 0 ? Date.now() + 1 : this.#idleSince, keepAliveTimeoutMs);
    return Math.min(...limits);
  }
}
