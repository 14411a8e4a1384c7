/**
 * One HTTP/2 connection (RFC 9113), the part that server and client share: it checks frames, passes
 * them to their streams, and handles SETTINGS, PING and flow control.
 *
 * - A connection error ends the connection with GOAWAY. A stream error resets that stream.
 * - Frames that carry no data are limited, and every DATA frame and stream allows more of them:
 *   gRPC sends a PING for nearly every piece of data. Beyond the limit the connection ends with
 *   ENHANCE_YOUR_CALM.
 * - A header block is decoded when all of it has arrived. Its size is limited.
 */

import type { HeaderFields } from "../message/header-fields.ts";
import { Allowance } from "./allowance.ts";
import { FrameDispatch } from "./frame-dispatch.ts";
import { type FrameHead, Http2FrameReader, uint31At } from "./frame-reader.ts";
import { type FieldSink, HpackDecoder } from "./hpack/decoder.ts";
import { HEADER_TABLE_BYTES, HeaderBlockWriter, HpackEncoder } from "./hpack/encoder.ts";
import { Outbox, type OutboxOwner } from "./outbox.ts";
import { CONNECTION_LOST, DEFAULT_WINDOW_BYTES, errorCode, frameFlag, MAX_WINDOW_BYTES } from "./protocol.ts";
import { defaultSettings, type PeerSettings, readSettings } from "./settings.ts";
import { Stream, type StreamOwner } from "./stream.ts";
import type { Wire, WireReader } from "./wire.ts";

/** Beyond this many unsent bytes streams stop writing, and a server stops reading requests. */
const MAX_BACKLOG_BYTES = 256 * 1024;
const IDLE_FRAMES = 4_000;
/** Frames without effect that each stream allows, such as a reset after the response. */
const IDLE_FRAMES_PER_STREAM = 4;

export interface SessionOptions {
  readonly isServer: boolean;
  readonly streamWindow: number;
  readonly connectionWindow: number;
  /** The largest header list, as SETTINGS_MAX_HEADER_LIST_SIZE counts it. */
  readonly headerBytes: number;
  readonly pings: number;
  readonly settings: number;
  readonly streamResets: number;
}

const block = new HeaderBlockWriter();

export abstract class Session extends FrameDispatch implements OutboxOwner, StreamOwner, WireReader {
  readonly outbox: Outbox = new Outbox(this);
  sendWindow: number = DEFAULT_WINDOW_BYTES;
  congested = false;
  protected readonly streams: Map<number, Stream> = new Map();
  protected readonly peer: PeerSettings = defaultSettings();
  protected readonly wire: Wire;
  /** The connection is over, or about to be. */
  protected over = false;
  readonly #options: SessionOptions;
  readonly #reader: Http2FrameReader = new Http2FrameReader(this);
  readonly #decoder: HpackDecoder = new HpackDecoder(HEADER_TABLE_BYTES);
  readonly #encoder: HpackEncoder = new HpackEncoder();
  readonly #pings: Allowance;
  readonly #settings: Allowance;
  readonly #resets: Allowance;
  readonly #idleFrames: Allowance = new Allowance(IDLE_FRAMES);
  #receiveWindow: number;
  #consumed = 0;
  readonly #waiting: Set<Stream> = new Set();
  #closedSoon: Stream[] = [];

  constructor(wire: Wire, options: SessionOptions) {
    super(options.headerBytes);
    this.wire = wire;
    this.#options = options;
    this.#pings = new Allowance(options.pings);
    this.#settings = new Allowance(options.settings);
    this.#resets = new Allowance(options.streamResets);
    this.#receiveWindow = options.connectionWindow;
  }

  /** Whether the stream was never opened (state "idle"): frames for it are a connection error. */
  protected abstract isIdle(stream: number): boolean;
  protected abstract onSettings(): void;
  protected abstract onPong(): void;
  protected abstract onStreamClosed(): void;
  /** The last stream of the peer that may have been processed, for GOAWAY. */
  protected abstract readonly lastPeerStream: number;

  // The connection.

  read(chunk: Buffer): void {
    if (!this.over) this.#reader.read(chunk);
  }

  write(bytes: Buffer, done: () => void): void {
    this.wire.write(bytes, done);
    if (this.congested || this.wire.backlog <= MAX_BACKLOG_BYTES) return;
    this.congested = true;
    // A client that does not read its responses can send no more requests. A backend is always
    // read: it may be waiting until we have read its response.
    if (this.#options.isServer) this.wire.pauseReading();
    this.onCongestion();
  }

  onWritable(): void {
    if (!this.congested) return;
    this.congested = false;
    if (this.#options.isServer) this.wire.resumeReading();
    this.onCongestion();
    this.#flushWaiting();
  }

  onFlushed(): void {
    if (this.#closedSoon.length === 0) return;
    const closed = this.#closedSoon;
    this.#closedSoon = [];
    for (const stream of closed) stream.afterClose();
  }

  onLost(): void {
    this.#stop(CONNECTION_LOST);
  }

  destroy(): void {
    this.wire.destroy();
    this.#stop(CONNECTION_LOST);
  }

  /** Ends the connection with a connection error. */
  protected override fail(code: number): void {
    if (this.over) return;
    this.outbox.goaway(this.lastPeerStream, code);
    this.outbox.flush();
    this.wire.end();
    this.#stop(code);
  }

  /** Ends the connection after its last stream. */
  protected finish(): void {
    if (this.over) return;
    this.outbox.flush();
    this.wire.end();
    this.#stop(errorCode.noError);
  }

  /** `congested` has changed. */
  protected onCongestion(): void {}

  #stop(code: number): void {
    if (this.over) return;
    this.over = true;
    this.#reader.stop();
    this.outbox.close();
    for (const stream of [...this.streams.values()]) stream.lose(code);
    this.onFlushed();
    this.onStopped();
  }

  protected abstract onStopped(): void;

  protected sendFirstSettings(settings: readonly (readonly [number, number])[]): void {
    this.outbox.settings(settings);
    this.outbox.windowUpdate(0, this.#options.connectionWindow - DEFAULT_WINDOW_BYTES);
  }

  // Frames.

  protected override onDataFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    const flowBytes = end - start;
    const { stream: id, flags } = frame;
    if (id === 0 || this.isIdle(id)) {
      this.fail(errorCode.protocolError);
      return;
    }
    this.#receiveWindow -= flowBytes;
    if (this.#receiveWindow < 0) {
      this.fail(errorCode.flowControlError);
      return;
    }
    let from = start;
    let to = end;
    if ((flags & frameFlag.padded) !== 0) {
      const padding = from < to ? (bytes[from++] as number) : 256;
      to -= padding;
      if (to < from) {
        this.fail(errorCode.protocolError);
        return;
      }
    }
    const endStream = (flags & frameFlag.endStream) !== 0;
    const stream = this.streams.get(id);
    if (stream === undefined) {
      if (this.lateFrame(id)) this.consumed(flowBytes);
      return;
    }
    if (from === to && !endStream && !this.idleFrame()) return;
    if (from < to) this.carried();
    const problem =
      stream.receiveData(bytes, from, to, flowBytes) ??
      (endStream ? stream.receiveEnd(undefined) : undefined);
    if (problem !== undefined) {
      this.consumed(flowBytes);
      this.resetBroken(stream, problem);
    }
  }

  /**
   * Decodes a header block. Every block must be decoded, also of a stream that is closed, so that
   * the dynamic tables of both sides agree. False: the connection has ended.
   */
  protected decode(sink: FieldSink, bytes: Buffer, start: number, end: number): boolean {
    if (this.#decoder.decode(bytes, start, end, sink)) return true;
    this.fail(errorCode.compressionError);
    return false;
  }

  protected override onResetFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    if (frame.stream === 0 || this.isIdle(frame.stream)) this.fail(errorCode.protocolError);
    else if (end - start !== 4) this.fail(errorCode.frameSizeError);
    else {
      const stream = this.streams.get(frame.stream);
      if (stream === undefined) this.idleFrame();
      else if (this.spendReset()) stream.receiveReset(bytes.readUInt32BE(start));
    }
  }

  protected override onSettingsFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    const ack = (frame.flags & frameFlag.ack) !== 0;
    if (frame.stream !== 0) this.fail(errorCode.protocolError);
    else if ((end - start) % 6 !== 0 || (ack && end > start)) this.fail(errorCode.frameSizeError);
    else if (ack) this.idleFrame();
    else if (!this.#settings.spend()) this.fail(errorCode.enhanceYourCalm);
    else this.#takeSettings(bytes, start, end);
  }

  #takeSettings(bytes: Buffer, start: number, end: number): void {
    const windowBefore = this.peer.initialWindowSize;
    const fromServer = !this.#options.isServer;
    const problem = readSettings(this.peer, bytes, { start, end, fromServer });
    if (problem !== undefined) {
      this.fail(problem);
      return;
    }
    this.#encoder.resize(this.peer.headerTableSize);
    const change = this.peer.initialWindowSize - windowBefore;
    for (const stream of change === 0 ? [] : this.streams.values()) {
      if (stream.growSendWindow(change)) continue;
      this.fail(errorCode.flowControlError);
      return;
    }
    this.markSettingsReceived();
    this.outbox.settingsAck();
    this.onSettings();
    this.#flushWaiting();
  }

  protected override onPingFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    if (frame.stream !== 0) this.fail(errorCode.protocolError);
    else if (end - start !== 8) this.fail(errorCode.frameSizeError);
    else if (!this.#pings.spend()) this.fail(errorCode.enhanceYourCalm);
    else if ((frame.flags & frameFlag.ack) === 0) this.outbox.ping(bytes, start, true);
    else this.onPong();
  }

  protected override onWindowUpdateFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    if (end - start !== 4) {
      this.fail(errorCode.frameSizeError);
      return;
    }
    const bytesMore = uint31At(bytes, start);
    const { stream: id } = frame;
    if (id === 0) {
      this.sendWindow += bytesMore;
      if (bytesMore === 0) this.fail(errorCode.protocolError);
      else if (this.sendWindow > MAX_WINDOW_BYTES) this.fail(errorCode.flowControlError);
      else this.#flushWaiting();
      return;
    }
    const stream = this.streams.get(id);
    if (stream === undefined) {
      if (this.isIdle(id)) this.fail(errorCode.protocolError);
      else this.idleFrame();
    } else if (bytesMore === 0) this.resetBroken(stream, errorCode.protocolError);
    else if (!stream.growSendWindow(bytesMore)) this.resetBroken(stream, errorCode.flowControlError);
    else this.#flushWaiting();
  }

  /**
   * Counts a frame that is allowed and has no effect. False: too many, the connection has ended.
   */
  protected override idleFrame(): boolean {
    if (this.#idleFrames.spend()) return true;
    this.fail(errorCode.enhanceYourCalm);
    return false;
  }

  /** A frame for a closed stream. False: the connection has ended. */
  protected lateFrame(_stream: number): boolean {
    return this.idleFrame();
  }

  /** Counts a stream that was reset after work had begun. False: too many (CVE-2023-44487). */
  protected spendReset(): boolean {
    if (this.#resets.spend()) return true;
    this.fail(errorCode.enhanceYourCalm);
    return false;
  }

  protected resetBroken(stream: Stream, code: number): void {
    if (this.spendReset()) stream.reset(code);
  }

  // What streams need.

  sendHeader(stream: Stream, pseudo: readonly string[], fields: readonly string[], endStream: boolean): void {
    this.#encoder.encode(pseudo, fields, block);
    this.outbox.headers(stream.id, block, endStream);
    if (endStream) stream.endedByHeader();
  }

  sendTrailers(stream: Stream, trailers: HeaderFields): boolean {
    try {
      this.#encoder.encode([], trailers.flat, block);
    } catch {
      return false;
    }
    this.outbox.headers(stream.id, block, true);
    return true;
  }

  carried(): void {
    this.#pings.earn(1);
    this.#idleFrames.earn(1);
  }

  protected openStream(id: number, own: boolean): Stream {
    this.#pings.earn(1);
    this.#idleFrames.earn(IDLE_FRAMES_PER_STREAM);
    const stream = new Stream(this, {
      id,
      own,
      sendWindow: this.peer.initialWindowSize,
      receiveWindow: this.#options.streamWindow,
    });
    this.streams.set(id, stream);
    return stream;
  }

  wait(stream: Stream): void {
    this.#waiting.add(stream);
  }

  consumed(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed * 2 < this.#options.connectionWindow) return;
    this.outbox.windowUpdate(0, this.#consumed);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
  }

  closed(stream: Stream, soon: boolean): void {
    this.streams.delete(stream.id);
    this.#waiting.delete(stream);
    if (!soon) stream.afterClose();
    else if (this.over) stream.afterClose();
    else {
      this.#closedSoon.push(stream);
      this.outbox.schedule();
    }
    if (!this.over) this.onStreamClosed();
  }

  /** Streams take turns, one frame each, so that none waits for all data of another. */
  #flushWaiting(): void {
    for (let moved = true; moved && this.#waiting.size > 0; ) {
      moved = false;
      for (const stream of [...this.#waiting]) {
        if (this.congested || this.over) return;
        this.#waiting.delete(stream);
        if (stream.flush()) moved = true;
        if (stream.sendable) this.#waiting.add(stream);
      }
    }
  }
}
