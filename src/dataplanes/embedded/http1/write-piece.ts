import type { Socket } from "node:net";
import { freePage, PAGE_BYTES, takePage } from "../sockets/write-buffers.ts";

/**
 * Pieces up to this size go out as text with what is around them: one plain write, measurably
 * cheaper than a gathered one.
 */
export const SMALL_BYTES: number = 4 * 1024;

/**
 * Text (Latin-1), then bytes, then text, together. The bytes are copied: whoever lent them may
 * overwrite them at once. False asks to wait for `drain`.
 */
export function writePiece(socket: Socket, front: string, bytes: Buffer, tail: string): boolean {
  if (bytes.length <= SMALL_BYTES) return socket.write(front + bytes.toString("latin1") + tail, "latin1");
  const length = front.length + bytes.length + tail.length;
  if (length > PAGE_BYTES) return socket.write(joined(Buffer.allocUnsafeSlow(length), front, bytes, tail));
  const page = takePage();
  return socket.write(joined(page, front, bytes, tail), () => freePage(page));
}

function joined(target: Buffer, front: string, bytes: Buffer, tail: string): Buffer {
  const start = target.write(front, 0, "latin1");
  target.set(bytes, start);
  const end = start + bytes.length;
  return target.subarray(0, end + target.write(tail, end, "latin1"));
}
