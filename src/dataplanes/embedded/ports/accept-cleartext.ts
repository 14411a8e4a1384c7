import type { Socket } from "node:net";

const preface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Finds out which HTTP a new cleartext connection speaks: HTTP/2 with prior knowledge opens with a
 * fixed text, everything else is HTTP/1. The bytes are put back for whoever serves it.
 */
export function acceptCleartext(
  socket: Socket,
  timeoutMs: number,
  serve: (socket: Socket, version: "http/1.1" | "h2") => void,
): void {
  let bytes: Buffer = Buffer.alloc(0);
  const limit = timeoutMs === 0 ? undefined : setTimeout(() => socket.destroy(), timeoutMs);
  const release = (): void => {
    clearTimeout(limit);
    socket.off("readable", read).off("end", leave).off("close", release);
  };
  const leave = (): void => {
    release();
    socket.destroy();
  };
  const read = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const known = Math.min(bytes.length, preface.length);
    const same = bytes.compare(preface, 0, known, 0, known) === 0;
    if (same && known < preface.length) return;
    release();
    socket.unshift(bytes);
    // The stream leaves its "readable" mode on the next tick; only then may somebody else start to
    // read.
    process.nextTick(serve, socket, same ? "h2" : "http/1.1");
  };
  socket.on("readable", read).on("end", leave).on("close", release);
}
