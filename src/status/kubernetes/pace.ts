export interface PaceTiming {
  /** The least time between two writes of one object. */
  readonly intervalMs: number;
  /** The wait after something had to be written again because somebody else had changed it; it doubles each time. */
  readonly fightMs: number;
  readonly mostFightMs: number;
}

/** When one object may be written again, and whether somebody keeps undoing what we write. */
export class Pace {
  #notBefore = 0;
  #fights = 0;
  #last: { readonly uid: string | undefined; readonly content: string } | undefined;

  /** How long the object must still be left alone. */
  rest(): number {
    return Math.max(0, this.#notBefore - performance.now());
  }

  /**
   * Notes a write: `content` is our part of the status, without times. Returns how often in a row the same content had to be written
   * again. Other content in between does not make a fight forgotten, only a long quiet time does.
   */
  written(uid: string | undefined, content: string, timing: PaceTiming): number {
    const again = this.#last?.uid === uid && this.#last?.content === content;
    if (performance.now() - this.#notBefore > timing.mostFightMs) this.#fights = 0;
    if (again) this.#fights++;
    this.#last = { uid, content };
    const rest = this.#fights === 0 ? timing.intervalMs : timing.fightMs * 2 ** (this.#fights - 1);
    this.#notBefore = performance.now() + Math.min(rest, Math.max(timing.mostFightMs, timing.intervalMs));
    return again ? this.#fights : 0;
  }
}
