import { MAX_FRAME_BYTES } from "./protocol.ts";

export interface BlockHead {
  readonly stream: number;
  readonly endStream: boolean;
}

/** More frames in one header block than any honest peer sends. */
const MAX_CONTINUATIONS = 32;

/** A header block of several frames, while it arrives. */
export class HeaderBlock {
  readonly #maxBytes: number;
  #head: BlockHead | undefined;
  #parts: Buffer[] = [];
  #bytes = 0;

  /**
   * A compressed block is smaller than its header list. One frame more leaves room to answer a list
   * that is too long with a response (431).
   */
  constructor(listBytes: number) {
    this.#maxBytes = listBytes + MAX_FRAME_BYTES;
  }

  get open(): boolean {
    return this.#head !== undefined;
  }

  get head(): BlockHead | undefined {
    return this.#head;
  }

  begin(head: BlockHead, bytes: Buffer, start: number, end: number): boolean {
    this.#head = head;
    this.#parts = [];
    this.#bytes = 0;
    return this.add(bytes, start, end);
  }

  /** False if the block is too long. */
  add(bytes: Buffer, start: number, end: number): boolean {
    this.#bytes += end - start;
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    return this.#bytes <= this.#maxBytes && this.#parts.length <= MAX_CONTINUATIONS;
  }

  take(): Buffer {
    const whole = Buffer.concat(this.#parts);
    this.#head = undefined;
    this.#parts = [];
    return whole;
  }
}
