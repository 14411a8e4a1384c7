/**
 * As much of Cap'n Proto's encoding as the tunnel protocol needs. A message is read from any number
 * of segments, and written as one. Words are 8 bytes, little endian; offsets of pointers count
 * words from the end of the pointer.
 */

export type Node =
  | { readonly type: "struct"; readonly data: Buffer; readonly pointers: readonly (Node | undefined)[] }
  | { readonly type: "bytes"; readonly bytes: Buffer }
  | { readonly type: "structs"; readonly items: readonly (Node & { type: "struct" })[] }
  | { readonly type: "capability"; readonly index: number };

export function struct(data: Buffer, ...pointers: (Node | undefined)[]): Node & { type: "struct" } {
  return { type: "struct", data, pointers };
}

export function bytes(content: Uint8Array): Node {
  return { type: "bytes", bytes: Buffer.from(content) };
}

export function text(content: string): Node {
  return { type: "bytes", bytes: Buffer.from(`${content}\0`) };
}

/** A struct's data section: so many words, filled by the function. */
export function words(count: number, fill: (data: Buffer) => void = () => {}): Buffer {
  const data = Buffer.alloc(count * 8);
  fill(data);
  return data;
}

/**
 * One message with its framing: number of segments less one, their sizes, padding to a word,
 * content.
 */
export function encode(root: Node): Buffer {
  const segment = new Segment();
  segment.write(segment.allocate(1), root);
  const content = segment.content();
  const head = Buffer.alloc(8);
  head.writeUInt32LE(0, 0);
  head.writeUInt32LE(content.length / 8, 4);
  return Buffer.concat([head, content]);
}

class Segment {
  #bytes: Buffer = Buffer.alloc(1024);
  #used = 0;

  content(): Buffer {
    return this.#bytes.subarray(0, this.#used);
  }

  /** Returns the offset in bytes. */
  allocate(count: number): number {
    const at = this.#used;
    this.#used += count * 8;
    if (this.#used > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(this.#used * 2 - this.#bytes.length)]);
    }
    return at;
  }

  write(pointer: number, node: Node | undefined): void {
    if (node === undefined) return;
    if (node.type === "capability") {
      this.#put(pointer, 3, node.index);
    } else if (node.type === "bytes") {
      const at = this.allocate(Math.ceil(node.bytes.length / 8));
      node.bytes.copy(this.#bytes, at);
      this.#put(pointer, offset(pointer, at) | 1, ((node.bytes.length << 3) | 2) >>> 0);
    } else if (node.type === "struct") {
      const size = node.data.length / 8;
      const at = this.allocate(size + node.pointers.length);
      this.#put(pointer, offset(pointer, at), (size | (node.pointers.length << 16)) >>> 0);
      this.#fill(at, node);
    } else {
      const first = node.items[0];
      const size = (first?.data.length ?? 0) / 8;
      const pointers = first?.pointers.length ?? 0;
      const total = node.items.length * (size + pointers);
      const at = this.allocate(1 + total);
      this.#put(pointer, offset(pointer, at) | 1, ((total << 3) | 7) >>> 0);
      this.#put(at, node.items.length << 2, (size | (pointers << 16)) >>> 0);
      for (const [index, item] of node.items.entries())
        this.#fill(at + 8 + index * (size + pointers) * 8, item);
    }
  }

  #fill(at: number, { data, pointers }: Node & { type: "struct" }): void {
    data.copy(this.#bytes, at);
    for (const [index, node] of pointers.entries()) this.write(at + data.length + index * 8, node);
  }

  #put(at: number, low: number, high: number): void {
    this.#bytes.writeUInt32LE(low >>> 0, at);
    this.#bytes.writeUInt32LE(high >>> 0, at + 4);
  }
}

function offset(pointer: number, target: number): number {
  return ((target - pointer - 8) / 8) << 2;
}

/** Reads messages out of a stream of chunks. */
export class MessageReader {
  #pending: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Reader[] {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    const messages: Reader[] = [];
    for (;;) {
      const message = this.#next();
      if (message === undefined) return messages;
      messages.push(message);
    }
  }

  #next(): Reader | undefined {
    const pending = this.#pending;
    if (pending.length < 8) return undefined;
    const count = pending.readUInt32LE(0) + 1;
    if (count > 512) throw new Error("a message of too many segments");
    const head = Math.ceil((4 + 4 * count) / 8) * 8;
    if (pending.length < head) return undefined;
    const sizes = Array.from({ length: count }, (_, index) => pending.readUInt32LE(4 + 4 * index) * 8);
    const total = sizes.reduce((sum, size) => sum + size, head);
    if (total > 8 * 1024 * 1024) throw new Error("a message that is too long");
    if (pending.length < total) return undefined;
    const segments: Buffer[] = [];
    let at = head;
    for (const size of sizes) {
      segments.push(pending.subarray(at, at + size));
      at += size;
    }
    this.#pending = pending.subarray(total);
    return Reader.root(segments);
  }
}

/** One struct of a message. Fields beyond its end have their default, zero. */
export class Reader {
  readonly #segments: readonly Buffer[];
  readonly #segment: number;
  readonly #at: number;
  readonly #dataBytes: number;
  readonly #pointers: number;

  private constructor(
    segments: readonly Buffer[],
    place: { segment: number; at: number; dataBytes: number; pointers: number },
  ) {
    this.#segments = segments;
    this.#segment = place.segment;
    this.#at = place.at;
    this.#dataBytes = place.dataBytes;
    this.#pointers = place.pointers;
  }

  static root(segments: readonly Buffer[]): Reader {
    const empty = { segment: 0, at: 0, dataBytes: 0, pointers: 1 };
    const found = new Reader(segments, empty).struct(0);
    if (found === undefined) throw new Error("a message without a root");
    return found;
  }

  u8(byte: number): number {
    return byte < this.#dataBytes ? this.#buffer.readUInt8(this.#at + byte) : 0;
  }

  u16(byte: number): number {
    return byte < this.#dataBytes ? this.#buffer.readUInt16LE(this.#at + byte) : 0;
  }

  u32(byte: number): number {
    return byte < this.#dataBytes ? this.#buffer.readUInt32LE(this.#at + byte) : 0;
  }

  u64(byte: number): bigint {
    return byte < this.#dataBytes ? this.#buffer.readBigUInt64LE(this.#at + byte) : 0n;
  }

  struct(index: number): Reader | undefined {
    const pointer = this.#pointer(index);
    if (pointer === undefined || (pointer.low & 3) !== 0) return undefined;
    const dataBytes = (pointer.high & 0xffff) * 8;
    return new Reader(this.#segments, { ...pointer, dataBytes, pointers: pointer.high >>> 16 });
  }

  bytes(index: number): Buffer {
    const pointer = this.#pointer(index);
    if (pointer === undefined || (pointer.low & 3) !== 1 || (pointer.high & 7) !== 2) return Buffer.alloc(0);
    const segment = this.#segments[pointer.segment] ?? Buffer.alloc(0);
    return segment.subarray(pointer.at, pointer.at + (pointer.high >>> 3));
  }

  text(index: number): string {
    return this.bytes(index).toString("utf8").replace(/\0$/, "");
  }

  get #buffer(): Buffer {
    return this.#segments[this.#segment] ?? Buffer.alloc(0);
  }

  /** Where a pointer leads, through at most one hop to another segment. */
  #pointer(index: number): { low: number; high: number; segment: number; at: number } | undefined {
    if (index >= this.#pointers) return undefined;
    const place = this.#at + this.#dataBytes + index * 8;
    const low = this.#buffer.readUInt32LE(place);
    const high = this.#buffer.readUInt32LE(place + 4);
    if (low === 0 && high === 0) return undefined;
    if ((low & 3) !== 2) return { low, high, segment: this.#segment, at: place + 8 + (low >> 2) * 8 };
    return this.#far(low, high);
  }

  #far(low: number, segment: number): { low: number; high: number; segment: number; at: number } {
    const target = this.#segments[segment] ?? Buffer.alloc(0);
    const pad = (low >>> 3) * 8;
    const first = { low: target.readUInt32LE(pad), high: target.readUInt32LE(pad + 4) };
    if ((low & 4) === 0) return { ...first, segment, at: pad + 8 + (first.low >> 2) * 8 };
    // The pad of a double hop holds where the content begins, and then what it is.
    const tag = { low: target.readUInt32LE(pad + 8), high: target.readUInt32LE(pad + 12) };
    return { ...tag, segment: first.high, at: (first.low >>> 3) * 8 };
  }
}
