/**
 * Encodes header blocks (RFC 7541). Fields that repeat enter the dynamic table. Others are written
 * as literals. A block is checked before its first byte is written, so that a field that cannot be
 * sent does not change the table.
 */

import { type FieldEncoding, FieldEncodings, type NameEncoding } from "./field-encodings.ts";
import { staticTable } from "./static-table.ts";

/** Shared by all connections of the thread: encodings do not depend on the connection. */
export const encodings: FieldEncodings = new FieldEncodings();

/** The dynamic table of either side, before any setting (RFC 9113, 6.5.2). */
export const HEADER_TABLE_BYTES = 4_096;
/** A field larger than a quarter of the table does not enter it: it would displace too many. */
const LARGEST_SHARE = 4;
const COLON = 58;
const SPACE = 32;

export class HpackEncoder {
  #maxSize = HEADER_TABLE_BYTES;
  /**
   * Size updates that the next block must begin with: the smallest size since the last block, and
   * the current one.
   */
  #announce: number | undefined;
  #size = 0;
  /** The oldest first. */
  #entries: FieldEncoding[] = [];
  /** Index of the entry in the order of all that were ever inserted. */
  readonly #positions: Map<FieldEncoding, number> = new Map();
  #inserted = 0;

  /** Applies SETTINGS_HEADER_TABLE_SIZE of the peer; never above the default. */
  resize(size: number): void {
    const next = Math.min(size, HEADER_TABLE_BYTES);
    if (next === this.#maxSize && this.#announce === undefined) return;
    this.#announce = Math.min(this.#announce ?? next, next);
    this.#maxSize = next;
    this.#evict(next);
  }

  /**
   * Encodes alternating names and values, pseudo-headers first. Throws without any effect if one of
   * them cannot be sent.
   */
  encode(pseudo: readonly string[], fields: readonly string[], block: HeaderBlockWriter): void {
    block.begin();
    for (let at = 0; at < pseudo.length; at += 2) add(block, pseudo[at] as string, pseudo[at + 1] as string);
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      if (name.charCodeAt(0) === COLON) throw new TypeError("a field that looks like a pseudo-header");
      add(block, name, fields[at + 1] as string);
    }
    this.#announceSize(block);
    for (let at = 0; at < block.count; at++) this.#write(block, at);
  }

  #write(block: HeaderBlockWriter, at: number): void {
    const field = block.encodings[at];
    if (field === undefined) {
      block.literal(block.names[at] as NameEncoding, block.values[at] as string);
      return;
    }
    if (field.staticIndex > 0) {
      block.index(field.staticIndex);
      return;
    }
    const position = this.#positions.get(field);
    if (position !== undefined) block.index(staticTable.length + this.#inserted - position);
    else if (field.repeated && field.size * LARGEST_SHARE <= this.#maxSize) {
      this.#insert(field);
      block.bytes(field.indexing);
    } else block.bytes(field.plain);
  }

  #insert(field: FieldEncoding): void {
    this.#evict(this.#maxSize - field.size);
    this.#entries.push(field);
    this.#positions.set(field, this.#inserted++);
    this.#size += field.size;
  }

  #evict(target: number): void {
    let gone = 0;
    while (this.#size > target) {
      const oldest = this.#entries[gone++] as FieldEncoding;
      this.#positions.delete(oldest);
      this.#size -= oldest.size;
    }
    if (gone > 0) this.#entries = this.#entries.slice(gone);
  }

  #announceSize(block: HeaderBlockWriter): void {
    if (this.#announce === undefined) return;
    if (this.#announce < this.#maxSize) block.tableSize(this.#announce);
    block.tableSize(this.#maxSize);
    this.#announce = undefined;
  }
}

function add(block: HeaderBlockWriter, name: string, value: string): void {
  const encodedName = encodings.name(name);
  const text = isPadded(value) ? value.trim() : value;
  block.add(encodedName, text, encodings.field(encodedName, text));
}

function isPadded(value: string): boolean {
  return value.charCodeAt(0) <= SPACE || value.charCodeAt(value.length - 1) <= SPACE;
}

/** The bytes of one block. One writer is used for all blocks of a thread. */
export class HeaderBlockWriter {
  readonly names: (NameEncoding | undefined)[] = [];
  readonly values: string[] = [];
  readonly encodings: (FieldEncoding | undefined)[] = [];
  count = 0;
  buffer: Buffer = Buffer.allocUnsafeSlow(16 * 1024);
  length = 0;

  begin(): void {
    this.count = 0;
    this.length = 0;
  }

  add(name: NameEncoding, value: string, encoding: FieldEncoding | undefined): void {
    this.names[this.count] = name;
    this.values[this.count] = value;
    this.encodings[this.count++] = encoding;
  }

  index(index: number): void {
    this.#room(4);
    this.#integer(0x80, 0x7f, index);
  }

  tableSize(size: number): void {
    this.#room(4);
    this.#integer(0x20, 0x1f, size);
  }

  bytes(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** Without Huffman coding: the value is written only once. */
  literal(name: NameEncoding, value: string): void {
    this.bytes(name.prefix);
    this.#room(value.length + 6);
    this.#integer(0, 0x7f, value.length);
    this.buffer.write(value, this.length, value.length, "latin1");
    this.length += value.length;
  }

  #integer(pattern: number, mask: number, value: number): void {
    const { buffer } = this;
    if (value < mask) {
      buffer[this.length++] = pattern | value;
      return;
    }
    buffer[this.length++] = pattern | mask;
    let rest = value - mask;
    for (; rest >= 128; rest >>>= 7) buffer[this.length++] = (rest & 127) | 128;
    buffer[this.length++] = rest;
  }

  #room(bytes: number): void {
    if (this.length + bytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafeSlow((this.length + bytes) * 2);
    this.buffer.copy(larger, 0, 0, this.length);
    this.buffer = larger;
  }
}
