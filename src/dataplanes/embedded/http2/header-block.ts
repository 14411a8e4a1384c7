import { MAX_FRAME_BYTES } from "./protocol.ts";

export interface BlockHead {
  readonly stream: number;
  readonly endStream: boolean;
}

/** Nobody who means well cuts a header into more. */
const MAX_CONTINUATIONS = 32;

/** A header block that comes in several frames, as far as it has come. */
export class HeaderBlock {
  readonly #maxBytes: number;
  #head: BlockHead | undefined;
  #parts: Buffer[] = [];
  #bytes = 0;

  /**
   * Compressed, a block is smaller than its list; a frame more leaves room to answer a list that is
   * too long with words.
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

  /** False when it is too much. */
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
