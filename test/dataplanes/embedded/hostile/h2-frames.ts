/** HTTP/2 as frames (RFC 9113), with HPACK literals only: says what no client library would say. */

import { once } from "node:events";
import type { Socket } from "node:net";
import type { Sockets } from "../../support/sockets.ts";

export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const END_STREAM = 1;
export const END_HEADERS = 4;
export const ACK = 1;

export const preface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export type Field = readonly [name: string, value: string];

/** Literals without indexing and without Huffman: every byte goes out as it is. */
export function hpack(fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  return Buffer.concat([integer(bytes.length, 7), bytes]);
}

function integer(value: number, bits: number): Buffer {
  const limit = 2 ** bits - 1;
  if (value < limit) return Buffer.from([value]);
  const bytes = [limit];
  let rest = value - limit;
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** HEADERS and as many CONTINUATIONs as it takes. */
export function headersFrames(stream: number, fields: readonly Field[], endStream = true): Buffer {
  const block = hpack(fields);
  const size = 16_384;
  const frames: Buffer[] = [];
  for (let at = 0; at === 0 || at < block.length; at += size) {
    const last = at + size >= block.length ? END_HEADERS : 0;
    const flags = at === 0 && endStream ? last | END_STREAM : last;
    frames.push(
      frame(
        at === 0 ? frameType.headers : frameType.continuation,
        flags,
        stream,
        block.subarray(at, at + size),
      ),
    );
  }
  return Buffer.concat(frames);
}

export interface SeenFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/**
 * A connection that has said its preface; frames that arrive are kept, answers are only looked at
 * by their kind.
 */
export class RawH2 {
  readonly frames: SeenFrame[] = [];
  readonly socket: Socket;
  closed = false;
  #bytes: Buffer = Buffer.alloc(0);
  #changed: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("end", () => socket.end());
    socket.on("close", () => {
      this.closed = true;
      this.#changed?.();
    });
  }

  static async open(sockets: Sockets, port: number): Promise<RawH2> {
    const connection = new RawH2(await sockets.connect(port));
    connection.send(preface, frame(frameType.settings, 0, 0));
    return connection;
  }

  send(...frames: readonly Buffer[]): void {
    if (!this.closed) this.socket.write(Buffer.concat(frames));
  }

  /** Writes at the pace of the connection; false when it was closed on the way. */
  async flood(chunk: Buffer, times: number): Promise<boolean> {
    for (let i = 0; i < times && !this.closed; i++) {
      if (this.socket.write(chunk)) continue;
      await Promise.race([once(this.socket, "drain"), once(this.socket, "close")]).catch(() => {});
    }
    return !this.closed;
  }

  find(type: number, stream: number): SeenFrame | undefined {
    return this.frames.find((seen) => seen.type === type && seen.stream === stream);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** How a stream ended: the status of its answer, or why there was none. */
  async outcome(stream: number): Promise<number | "reset" | "goaway" | "closed"> {
    const result = (): number | "reset" | "goaway" | "closed" | undefined => {
      const answer = this.find(frameType.headers, stream);
      if (answer !== undefined) return statusOf(answer.payload);
      if (this.find(frameType.rstStream, stream) !== undefined) return "reset";
      if (this.find(frameType.goaway, 0) !== undefined) return "goaway";
      return this.closed ? "closed" : undefined;
    };
    await this.until(() => result() !== undefined);
    return result() as number;
  }

  #read(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    while (this.#bytes.length >= 9) {
      const length = this.#bytes.readUIntBE(0, 3);
      if (this.#bytes.length < 9 + length) break;
      const seen: SeenFrame = {
        type: this.#bytes[3] as number,
        flags: this.#bytes[4] as number,
        stream: this.#bytes.readUInt32BE(5) & 0x7fffffff,
        payload: this.#bytes.subarray(9, 9 + length),
      };
      this.#bytes = this.#bytes.subarray(9 + length);
      this.frames.push(seen);
      if (seen.type === frameType.settings && (seen.flags & ACK) === 0)
        this.send(frame(frameType.settings, ACK, 0));
    }
    this.#changed?.();
  }
}

/** `:status` comes first: one of the static table, or a literal with its name indexed there. */
function statusOf(block: Buffer): number {
  const fixed = new Map([200, 204, 206, 304, 400, 404, 500].map((status, i) => [0x88 + i, status]));
  // A change of the dynamic table's size may come before.
  let at = 0;
  while (((block[at] ?? 0) & 0xe0) === 0x20) at += 1;
  const known = fixed.get(block[at] ?? 0);
  if (known !== undefined) return known;
  const length = block[at + 1] ?? 0;
  const value = block.subarray(at + 2, at + 2 + (length & 0x7f));
  return Number((length & 0x80) === 0 ? value.toString("latin1") : digits(value));
}

/** Huffman codes of digits: 0 to 2 in five bits, the others in six (RFC 7541, appendix B). */
function digits(bytes: Buffer): string {
  let bits = "";
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  let result = "";
  while (result.length < 3) {
    const short = Number.parseInt(bits.slice(0, 5), 2);
    const long = Number.parseInt(bits.slice(0, 6), 2);
    if (short <= 2) {
      result += short;
      bits = bits.slice(5);
    } else {
      // 3 is 0x19, and so on up to 9.
      result += long - 0x19 + 3;
      bits = bits.slice(6);
    }
  }
  return result;
}
