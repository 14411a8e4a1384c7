/**
 * Writes lines to standard output or to a file, and never waits for whoever reads them. Node writes
 * to a pipe synchronously, so one with a slow reader would stop everything that this thread serves:
 * the pipe is opened anew, as one that says when it is full. Lines beyond a bound are lost, and
 * told as lost.
 */

import { close, closeSync, constants, fstatSync, openSync, write } from "node:fs";

export interface LineWriterOptions {
  /** A descriptor, or a file that lines are appended to. */
  readonly to: number | string;
  readonly onWritten: (lines: number) => void;
  readonly onLost: (lines: number) => void;
  readonly onError: (error: Error) => void;
  readonly maxBytes?: number;
}

const MAX_BYTES = 4 * 1024 * 1024;
const PIECE_LINES = 512;
const FULL_PIPE_MS = 20;
const CLOSE_MS = 1_000;

export class LineWriter {
  readonly #options: LineWriterOptions;
  readonly #descriptor: number;
  readonly #isOwn: boolean;
  #lines: string[] = [];
  /** UTF-16 units of lines that wait: their bytes, for what is ASCII. */
  #waiting = 0;
  #isWriting = false;
  #hasFailed = false;
  #isClosed = false;
  #onIdle: (() => void) | undefined;

  constructor(options: LineWriterOptions) {
    this.#options = options;
    const { to } = options;
    const opened = typeof to === "string" ? openSync(to, "a", 0o640) : unwaiting(to);
    this.#isOwn = opened !== undefined;
    this.#descriptor = opened ?? (to as number);
  }

  write(line: string): void {
    if (this.#waiting + line.length > (this.#options.maxBytes ?? MAX_BYTES)) {
      this.#options.onLost(1);
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    if (!this.#isWriting) this.#next();
  }

  /** Waits a moment for lines that are on their way; the others are lost. */
  async close(): Promise<void> {
    if (this.#isWriting) {
      const idle = Promise.withResolvers<void>();
      this.#onIdle = idle.resolve;
      const limit = setTimeout(idle.resolve, CLOSE_MS);
      await idle.promise;
      clearTimeout(limit);
    }
    if (this.#lines.length > 0) this.#options.onLost(this.#lines.length);
    this.#lines = [];
    this.#isClosed = true;
    if (this.#isOwn) close(this.#descriptor, () => {});
  }

  #next(): void {
    const lines = this.#lines.splice(0, PIECE_LINES);
    this.#isWriting = lines.length > 0;
    if (lines.length === 0) {
      this.#onIdle?.();
      return;
    }
    for (const line of lines) this.#waiting -= line.length;
    this.#writeAll(Buffer.from(`${lines.join("\n")}\n`), lines.length);
  }

  #writeAll(bytes: Buffer, lines: number): void {
    if (this.#isClosed) {
      this.#options.onLost(lines);
      return;
    }
    write(this.#descriptor, bytes, (error, written) => {
      if (error !== null && error.code === "EAGAIN") {
        setTimeout(() => this.#writeAll(bytes, lines), FULL_PIPE_MS).unref();
      } else if (error !== null) {
        this.#options.onLost(lines);
        if (!this.#hasFailed) this.#options.onError(error);
        this.#hasFailed = true;
        this.#next();
      } else if (written < bytes.length) this.#writeAll(bytes.subarray(written), lines);
      else {
        this.#options.onWritten(lines);
        this.#next();
      }
    });
  }
}

/**
 * The same pipe without waiting. Undefined for what is no pipe, and where it may not be opened:
 * then another thread of Node's waits.
 */
function unwaiting(descriptor: number): number | undefined {
  try {
    if (!fstatSync(descriptor).isFIFO()) return undefined;
    const opened = openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
    if (fstatSync(opened).isFIFO()) return opened;
    closeSync(opened);
  } catch {
    // Not on this system.
  }
  return undefined;
}
