/**
 * Decodes header blocks (RFC 7541). These are connection errors, and nothing else is:
 *
 * - integers that are incomplete or above `MAX_INTEGER`,
 * - indexes without an entry,
 * - strings that are longer than their block,
 * - invalid Huffman codes and padding,
 * - size updates of the dynamic table that are not at the beginning of a block, more than two of
 *   them, or one beyond the size that was announced.
 */

import { type Field, makeField } from "./field.ts";
import { decodeHuffman } from "./huffman.ts";
import { staticTable } from "./static-table.ts";

export interface FieldSink {
  /** `neverIndexed`: a proxy must not put the field into a table either (RFC 7541, 6.2.3). */
  field(field: Field, neverIndexed: boolean): void;
}

const STATIC_COUNT = staticTable.length;
/** Larger integers have no use in a header block. */
const MAX_INTEGER = 1 << 24;

export class HpackDecoder {
  /** The table size that was announced to the peer. */
  readonly #allowedSize: number;
  #maxSize: number;
  #size = 0;
  /** A ring buffer, the newest entry at `#head`. */
  readonly #entries: (Field | undefined)[];
  readonly #mask: number;
  #head = 0;
  #count = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  constructor(allowedSize: number) {
    this.#allowedSize = allowedSize;
    this.#maxSize = allowedSize;
    const slots = 2 ** Math.ceil(Math.log2(Math.max(2, allowedSize / 32 + 1)));
    this.#entries = new Array<Field | undefined>(slots).fill(undefined);
    this.#mask = slots - 1;
  }

  /** The size of the dynamic table in bytes. */
  get tableSize(): number {
    return this.#size;
  }

  /**
   * False if the block is invalid. Then the connection must end, because the tables of both sides
   * no longer agree.
   */
  decode(bytes: Buffer, start: number, end: number, sink: FieldSink): boolean {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    let mayResize = 2;
    while (this.#at < this.#end) {
      const first = bytes[this.#at] as number;
      if (first >= 0x80) {
        const field = this.#indexed(this.#integer(0x7f));
        if (field === undefined) return false;
        sink.field(field, false);
        mayResize = 0;
      } else if (first >= 0x40) {
        const field = this.#literal(0x3f);
        if (field === undefined) return false;
        this.#insert(field);
        sink.field(field, false);
        mayResize = 0;
      } else if (first >= 0x20) {
        if (mayResize-- === 0 || !this.#resize(this.#integer(0x1f))) return false;
      } else {
        const field = this.#literal(0x0f);
        if (field === undefined) return false;
        sink.field(field, first >= 0x10);
        mayResize = 0;
      }
    }
    return true;
  }

  #indexed(index: number): Field | undefined {
    if (index <= 0) return undefined;
    if (index <= STATIC_COUNT) return staticTable[index - 1];
    const back = index - STATIC_COUNT - 1;
    return back < this.#count ? this.#entries[(this.#head - back) & this.#mask] : undefined;
  }

  #literal(mask: number): Field | undefined {
    const index = this.#integer(mask);
    if (index < 0) return undefined;
    const name = index === 0 ? this.#string() : this.#indexed(index)?.name;
    if (name === undefined) return undefined;
    const value = this.#string();
    return value === undefined ? undefined : makeField(name, value);
  }

  /** Negative if the integer is invalid. */
  #integer(mask: number): number {
    let value = (this.#bytes[this.#at++] as number) & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      if (this.#at >= this.#end) return -1;
      const byte = this.#bytes[this.#at++] as number;
      value += (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return value <= MAX_INTEGER ? value : -1;
    }
    return -1;
  }

  #string(): string | undefined {
    if (this.#at >= this.#end) return undefined;
    const huffman = (this.#bytes[this.#at] as number) >= 0x80;
    const length = this.#integer(0x7f);
    const start = this.#at;
    if (length < 0 || length > this.#end - start) return undefined;
    this.#at = start + length;
    return huffman
      ? decodeHuffman(this.#bytes, start, start + length)
      : this.#bytes.toString("latin1", start, start + length);
  }

  #insert(field: Field): void {
    if (field.size > this.#maxSize) {
      this.#evict(0);
      return;
    }
    this.#evict(this.#maxSize - field.size);
    this.#head = (this.#head + 1) & this.#mask;
    this.#entries[this.#head] = field;
    this.#count++;
    this.#size += field.size;
  }

  #resize(size: number): boolean {
    if (size < 0 || size > this.#allowedSize) return false;
    this.#maxSize = size;
    this.#evict(size);
    return true;
  }

  #evict(target: number): void {
    while (this.#size > target) {
      const oldest = (this.#head - this.#count + 1) & this.#mask;
      this.#size -= (this.#entries[oldest] as Field).size;
      this.#entries[oldest] = undefined;
      this.#count--;
    }
  }
}
