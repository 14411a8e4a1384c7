/**
 * Write buffers, used again as soon as they have been written: most of the time they are still in
 * the processor's cache.
 */

/**
 * Room for four full HTTP/2 frames, or for 64 KiB, which is read from a socket at a time, with a
 * header before it.
 */
export const WRITE_BUFFER_BYTES: number = 68 * 1024;
/**
 * 17 MB. Over TLS a write completes a little later, so there is about one buffer in use for each
 * response at a time. Allocating a buffer beyond these costs more than filling it.
 */
const MAX_FREE_BUFFERS = 256;

const free: Buffer[] = [];

export function takeWriteBuffer(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(WRITE_BUFFER_BYTES);
}

/** Takes back a buffer that has been written. */
export function freeWriteBuffer(buffer: Buffer): void {
  if (free.length < MAX_FREE_BUFFERS) free.push(buffer);
}
