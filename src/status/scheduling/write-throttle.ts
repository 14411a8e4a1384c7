import { isDeepStrictEqual } from "node:util";

export interface ThrottleTiming {
  /** The least time between two writes of one object. */
  readonly intervalMs: number;
  /**
   * The wait after a competing writer had changed the status and it was written again. It doubles
   * each time.
   */
  readonly contestedMs: number;
  readonly mostContestedMs: number;
}

/**
 * What a write says, without times. The same content twice for one object means that a competing
 * writer has undone the first write.
 */
export interface WriteContent {
  readonly uid: string | undefined;
  readonly said: unknown;
}

/** When one object may be written again, and whether a competing writer undoes our writes. */
export class WriteThrottle {
  #writtenAt = Number.NEGATIVE_INFINITY;
  #rewrites = 0;
  #last: WriteContent | undefined;

  /**
   * How long to wait before this content may be written. Only content that was written before waits
   * for the longer time after a competing writer. New content waits for the usual interval only, so
   * a competing writer cannot delay it.
   */
  rest(content: WriteContent, now: number, timing: ThrottleTiming): number {
    const wait = this.#isLast(content) ? this.#contestedWait(timing) : timing.intervalMs;
    return Math.max(0, this.#writtenAt + wait - now);
  }

  /**
   * Notes a write. Returns how often the same content had to be written again, 0 for new content.
   * New content does not reset the count. Only a long time without writes does.
   */
  written(content: WriteContent, now: number, timing: ThrottleTiming): number {
    const again = this.#isLast(content);
    if (now - this.#writtenAt - this.#contestedWait(timing) > timing.mostContestedMs) this.#rewrites = 0;
    if (again) this.#rewrites++;
    this.#last = content;
    this.#writtenAt = now;
    return again ? this.#rewrites : 0;
  }

  #isLast(content: WriteContent): boolean {
    return this.#last?.uid === content.uid && isDeepStrictEqual(this.#last?.said, content.said);
  }

  #contestedWait({ intervalMs, contestedMs, mostContestedMs }: ThrottleTiming): number {
    if (this.#rewrites === 0) return intervalMs;
    return Math.min(contestedMs * 2 ** (this.#rewrites - 1), Math.max(mostContestedMs, intervalMs));
  }
}
