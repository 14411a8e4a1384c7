/**
 * Checks the order of the frames of one connection (RFC 9113, 4.3, 6.2 and 6.10) and gives each to
 * whoever handles its type: SETTINGS come first, and nothing comes between the parts of a header
 * block, which is collected here.
 */
import { type FrameHandler, type FrameHead, uint31At } from "./frame-reader.ts";
import { type BlockHead, HeaderBlock } from "./header-block.ts";
import { errorCode, frameFlag, frameType } from "./protocol.ts";

export abstract class FrameDispatch implements FrameHandler {
  readonly #headerBlock: HeaderBlock;
  #settingsReceived = false;

  /** `headerBytes` is the limit of one header list. */
  constructor(headerBytes: number) {
    this.#headerBlock = new HeaderBlock(headerBytes);
  }

  /** Ends the connection. */
  protected abstract fail(code: number): void;
  /** A frame that is allowed and carries nothing. False: there were too many of them. */
  protected abstract idleFrame(): boolean;
  protected abstract onHeaderBlock(head: BlockHead, bytes: Buffer, start: number, end: number): void;
  protected abstract onGoaway(lastStream: number, code: number): void;
  protected abstract onDataFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void;
  protected abstract onResetFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void;
  protected abstract onSettingsFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void;
  protected abstract onPingFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void;
  protected abstract onWindowUpdateFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void;

  /** A header block has begun and not ended. */
  protected get headerOpen(): boolean {
    return this.#headerBlock.open;
  }

  /** The peer's first SETTINGS frame has arrived. */
  get settingsReceived(): boolean {
    return this.#settingsReceived;
  }

  protected markSettingsReceived(): void {
    this.#settingsReceived = true;
  }

  onFrameTooLarge(): void {
    this.fail(errorCode.frameSizeError);
  }

  onFrame(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    const { type } = frame;
    if (!this.#settingsReceived && (type !== frameType.settings || (frame.flags & frameFlag.ack) !== 0)) {
      this.fail(errorCode.protocolError);
    } else if (this.#headerBlock.open && type !== frameType.continuation) this.fail(errorCode.protocolError);
    else if (type === frameType.data) this.onDataFrame(frame, bytes, start, end);
    else if (type === frameType.headers) this.#onHeaders(frame, bytes, start, end);
    else if (type === frameType.windowUpdate) this.onWindowUpdateFrame(frame, bytes, start, end);
    else this.#onOther(frame, bytes, start, end);
  }

  #onOther(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    switch (frame.type) {
      case frameType.continuation:
        this.#onContinuation(frame, bytes, start, end);
        break;
      case frameType.rstStream:
        this.onResetFrame(frame, bytes, start, end);
        break;
      case frameType.settings:
        this.onSettingsFrame(frame, bytes, start, end);
        break;
      case frameType.ping:
        this.onPingFrame(frame, bytes, start, end);
        break;
      case frameType.goaway:
        if (frame.stream !== 0) this.fail(errorCode.protocolError);
        else if (end - start < 8) this.fail(errorCode.frameSizeError);
        else if (this.idleFrame()) this.onGoaway(uint31At(bytes, start), bytes.readUInt32BE(start + 4));
        break;
      case frameType.priority:
        if (frame.stream === 0) this.fail(errorCode.protocolError);
        else if (end - start !== 5) this.fail(errorCode.frameSizeError);
        else if (uint31At(bytes, start) === frame.stream) this.fail(errorCode.protocolError);
        else this.idleFrame();
        break;
      case frameType.pushPromise:
        this.fail(errorCode.protocolError);
        break;
      default:
        this.idleFrame();
    }
  }

  #onHeaders(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    let from = start;
    let to = end;
    const { flags } = frame;
    if ((flags & frameFlag.padded) !== 0) to -= from < to ? (bytes[from++] as number) : 256;
    const dependency = (flags & frameFlag.priority) !== 0 && from + 4 <= to ? uint31At(bytes, from) : 0;
    if ((flags & frameFlag.priority) !== 0) from += 5;
    if (frame.stream === 0 || to < from || dependency === frame.stream) {
      this.fail(errorCode.protocolError);
      return;
    }
    const head: BlockHead = { stream: frame.stream, endStream: (flags & frameFlag.endStream) !== 0 };
    if ((flags & frameFlag.endHeaders) !== 0) this.onHeaderBlock(head, bytes, from, to);
    else if (!this.#headerBlock.begin(head, bytes, from, to)) this.fail(errorCode.enhanceYourCalm);
    else this.onHeaderBegun();
  }

  #onContinuation(frame: FrameHead, bytes: Buffer, start: number, end: number): void {
    const { head } = this.#headerBlock;
    if (head === undefined || head.stream !== frame.stream) this.fail(errorCode.protocolError);
    else if (!this.#headerBlock.add(bytes, start, end)) this.fail(errorCode.enhanceYourCalm);
    else if ((frame.flags & frameFlag.endHeaders) !== 0) {
      const whole = this.#headerBlock.take();
      this.onHeaderBlock(head, whole, 0, whole.length);
    }
  }

  protected onHeaderBegun(): void {}
}
