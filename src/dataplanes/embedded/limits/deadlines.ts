import type { Limits } from "./options.ts";

const FINEST_MS = 25;
const COARSEST_MS = 500;

/** Something with a time limit. */
export interface Timed {
  /** On the clock of `Deadlines`; infinity for none. */
  deadline: number;
  onDeadline(): void;
}

/**
 * Time limits of all HTTP connections of a thread, to clients and to backends. Each has a number,
 * and one timer checks all numbers at intervals. Setting a limit costs nothing. A limit is never
 * early, and at most two ticks late.
 */
export class Deadlines {
  /** Milliseconds, as of the last tick. */
  now: number = performance.now();
  readonly #tickMs: number;
  readonly #members: Set<Timed> = new Set();
  #timer: NodeJS.Timeout | undefined;

  constructor(tickMs: number) {
    this.#tickMs = tickMs;
  }

  add(member: Timed): void {
    this.#members.add(member);
    if (this.#timer !== undefined) return;
    this.now = performance.now();
    this.#timer = setInterval(() => this.#tick(), this.#tickMs).unref();
  }

  delete(member: Timed): void {
    this.#members.delete(member);
    if (this.#members.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** 0: no limit. */
  after(milliseconds: number): number {
    return milliseconds === 0 ? Number.POSITIVE_INFINITY : this.now + milliseconds + this.#tickMs;
  }

  #tick(): void {
    this.now = performance.now();
    for (const member of this.#members) {
      if (member.deadline > this.now) continue;
      member.deadline = Number.POSITIVE_INFINITY;
      member.onDeadline();
    }
  }
}

/** Fine enough for the shortest limit that is watched, and no finer than that. */
export function tickFor(limits: Limits): number {
  const watched = [
    limits.headerTimeoutMs,
    limits.requestTimeoutMs,
    limits.keepAliveTimeoutMs,
    limits.backendResponseTimeoutMs,
    limits.backendIdleTimeoutMs,
    limits.clientStallTimeoutMs,
  ];
  const shortest = Math.min(COARSEST_MS * 4, ...watched.filter((limit) => limit > 0));
  return Math.max(FINEST_MS, shortest / 4);
}
