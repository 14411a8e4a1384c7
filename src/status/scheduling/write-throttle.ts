import { isDeepStrictEqual } from "node:util";

export interface ThrottleTiming {
  /** The least time between two writes of one object. */
  readonly intervalMs: number;
  /**
   * The wait after something had to be written again because somebody else had changed it; it
   * doubles each time.
   */
  readonly fightMs: number;
  readonly mostFightMs: number;
}

/**
 * What a write says, without times: equal content for the same object is a write that somebody has
 * undone.
 */
export interface WriteContent {
  readonly uid: string | undefined;
  readonly said: unknown;
}

/** When one object may be written again, and whether somebody keeps undoing what we write. */
export class WriteThrottle {
  #writtenAt = Number.NEGATIVE_INFINITY;
  #fights = 0;
  #last: WriteContent | undefined;

  /**
   * How long the object must still be left alone before this may be written. Only what was written
   * already waits for the end of a fight: a new truth is never late because somebody fights an old
   * one.
   */
  rest(content: WriteContent, now: number, timing: ThrottleTiming): number {
    const wait = this.#isLast(content) ? this.#fightWait(timing) : timing.intervalMs;
    return Math.max(0, this.#writtenAt + wait - now);
  }

  /**
   * Notes a write. Returns how often in a row the same content had to be written again. Other
   * content in between does not make a fight forgotten, only a long quiet time does.
   */
  written(content: WriteContent, now: number, timing: ThrottleTiming): number {
    const again = this.#isLast(content);
    if (now - this.#writtenAt - this.#fightWait(timing) > timing.mostFightMs) this.#fights = 0;
    if (again) this.#fights++;
    this.#last = content;
    this.#writtenAt = now;
    return again ? this.#fights : 0;
  }

  #isLast(content: WriteContent): boolean {
    return this.#last?.uid === content.uid && isDeepStrictEqual(this.#last?.said, content.said);
  }

  #fightWait({ intervalMs, fightMs, mostFightMs }: ThrottleTiming): number {
    if (this.#fights === 0) return intervalMs;
    return Math.min(fightMs * 2 ** (this.#fights - 1), Math.max(mostFightMs, intervalMs));
  }
}
