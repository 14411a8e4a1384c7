import type { Socket } from "node:net";

/** Pieces up to this size go out as text with what is around them: one plain write, measurably cheaper than a gathered one. */
export const SMALL_BYTES: number = 4 * 1024;

/** Text (Latin-1), then bytes, then text, together. False asks to wait for `drain`. */
export function writePiece(socket: Socket, front: string, bytes: Buffer, tail: string): boolean {
  if (bytes.length <= SMALL_BYTES) return socket.write(front + bytes.toString("latin1") + tail, "latin1");
  if (front === "" && tail === "") return socket.write(bytes);
  socket.cork();
  if (front !== "") socket.write(front, "latin1");
  socket.write(bytes);
  if (tail !== "") socket.write(tail, "latin1");
  socket.uncork();
  return !socket.writableNeedDrain;
}
