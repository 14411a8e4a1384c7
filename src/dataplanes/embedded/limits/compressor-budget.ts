import type { BufferedBytes } from "./buffered-bytes.ts";

/** What one compressor takes at most, with its buffers. */
const COMPRESSOR_BYTES = 512 * 1024;
/** At a time in one thread: 128 MiB. */
const MOST_COMPRESSORS = 256;

/**
 * How many answers are compressed at a time. Beyond that they go as they are, which costs
 * bandwidth and harms nobody.
 */
export class CompressorBudget {
  #taken = 0;

  /** False: no more now. What was taken must be given back once. */
  take(buffered: BufferedBytes | undefined): boolean {
    if (this.#taken >= MOST_COMPRESSORS) return false;
    if (buffered !== undefined && !buffered.takeCompressor(COMPRESSOR_BYTES)) return false;
    this.#taken++;
    return true;
  }

  giveBack(buffered: BufferedBytes | undefined): void {
    this.#taken--;
    buffered?.set("compressor", 0);
  }
}
