/** gRPC's framing over an HTTP/2 stream: one byte of flags, four of length, then the message. */

const HEAD = 5;

export function frame(payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD + payload.length);
  bytes.writeUInt8(0, 0);
  bytes.writeUInt32BE(payload.length, 1);
  bytes.set(payload, HEAD);
  return bytes;
}

/** Puts messages together from chunks as they arrive. */
export class GrpcFrameReader {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The messages that the chunk completes; throws when the peer breaks the rules. */
  push(chunk: Buffer): readonly Buffer[] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    const messages: Buffer[] = [];
    for (;;) {
      if (this.#size < HEAD) return messages;
      const head = this.#joined(HEAD);
      if (head.readUInt8(0) !== 0) throw new RangeError("compressed gRPC messages are not understood");
      const length = head.readUInt32BE(1);
      if (length > this.#limit) throw new RangeError("a gRPC message is too large");
      if (this.#size < HEAD + length) return messages;
      const all = this.#joined(HEAD + length);
      messages.push(all.subarray(HEAD, HEAD + length));
      this.#chunks = all.length > HEAD + length ? [all.subarray(HEAD + length)] : [];
      this.#size -= HEAD + length;
    }
  }

  /** One buffer with at least this many bytes; joins only when it must. */
  #joined(length: number): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= length) {
      if (this.#chunks.length === 1) return first;
    }
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}
