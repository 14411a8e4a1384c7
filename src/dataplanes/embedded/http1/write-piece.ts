import type { Socket } from "node:net";
import { freeWriteBuffer, takeWriteBuffer, WRITE_BUFFER_BYTES } from "../sockets/write-buffers.ts";

/**
 * Pieces up to this size are written as one string with the text around them. That is measurably
 * cheaper than a write of several buffers.
 */
export const SMALL_BYTES: number = 4 * 1024;

/**
 * Writes text (Latin-1), bytes and text as one piece. The bytes are copied: the caller may
 * overwrite them at once. False asks to wait for `drain`.
 */
export function writePiece(socket: Socket, front: string, bytes: Buffer, tail: string): boolean {
  if (bytes.length <= SMALL_BYTES) return socket.write(front + bytes.toString("latin1") + tail, "latin1");
  const length = front.length + bytes.length + tail.length;
  if (length > WRITE_BUFFER_BYTES)
    return socket.write(joined(Buffer.allocUnsafeSlow(length), front, bytes, tail));
  const buffer = takeWriteBuffer();
  return socket.write(joined(buffer, front, bytes, tail), () => freeWriteBuffer(buffer));
}

function joined(target: Buffer, front: string, bytes: Buffer, tail: string): Buffer {
  const start = target.write(front, 0, "latin1");
  target.set(bytes, start);
  const end = start + bytes.length;
  return target.subarray(0, end + target.write(tail, end, "latin1"));
}
