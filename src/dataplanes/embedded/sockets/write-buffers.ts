/**
 * Memory for what is about to be written, used again as soon as it has been: most of the time the
 * processor still has it in its cache.
 */

/**
 * Four full frames of HTTP/2 with their headers, or what is read of a socket at a time with a head
 * before it.
 */
export const PAGE_BYTES: number = 68 * 1024;
/**
 * 17 MB. Over TLS a write is done a little later, so that as many are under way as there are
 * answers at a time; a page beyond these has to be found anew, which costs more than to fill it.
 */
const MAX_FREE_PAGES = 256;

const free: Buffer[] = [];

export function takePage(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(PAGE_BYTES);
}

/** Nobody reads it any more. */
export function freePage(page: Buffer): void {
  if (free.length < MAX_FREE_PAGES) free.push(page);
}
