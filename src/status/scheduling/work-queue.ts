import { type Clock, SYSTEM_CLOCK } from "./clock.ts";

/**
 * A work queue of keys: each is at most once in the queue and at most once in work. Keys are in
 * lanes that take turns, so that a tenant with very many keys delays only itself.
 */
export class WorkQueue {
  readonly #laneOf: (name: string) => string;
  readonly #clock: Clock;
  /** The lane whose turn it is comes first; none is empty. */
  readonly #ready = new Map<string, Set<string>>();
  #readyCount = 0;
  readonly #timers = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  readonly #busy = new Set<string>();
  /** Added while in work: queued again afterwards. */
  readonly #again = new Map<string, number>();
  readonly #waiting: ((name: string | undefined) => void)[] = [];
  #closed = false;

  constructor(laneOf: (name: string) => string, clock: Clock = SYSTEM_CLOCK) {
    this.#laneOf = laneOf;
    this.#clock = clock;
  }

  get size(): number {
    return this.#readyCount + this.#timers.size + this.#busy.size;
  }

  /** An earlier time wins over a later one. */
  add(name: string, delayMs = 0): void {
    if (this.#closed) return;
    if (this.#busy.has(name)) {
      this.#again.set(name, Math.min(delayMs, this.#again.get(name) ?? Number.POSITIVE_INFINITY));
      return;
    }
    if (this.#ready.get(this.#laneOf(name))?.has(name)) return;
    const at = this.#clock.now() + delayMs;
    const timed = this.#timers.get(name);
    if (timed !== undefined) {
      if (timed.at <= at) return;
      timed.cancel();
      this.#timers.delete(name);
    }
    if (delayMs <= 0) this.#offer(name);
    else this.#timers.set(name, { at, cancel: this.#clock.after(delayMs, () => this.#due(name)) });
  }

  /** The next name; undefined when the queue is closed. `done` must follow. */
  next(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const name = this.#takeReady();
    if (name === undefined) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#busy.add(name);
    return Promise.resolve(name);
  }

  done(name: string): void {
    this.#busy.delete(name);
    const delay = this.#again.get(name);
    this.#again.delete(name);
    if (delay !== undefined) this.add(name, delay);
  }

  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
    this.#ready.clear();
    this.#readyCount = 0;
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }

  #due(name: string): void {
    this.#timers.delete(name);
    this.#offer(name);
  }

  #offer(name: string): void {
    const taker = this.#waiting.shift();
    if (taker === undefined) {
      this.#putReady(name);
      return;
    }
    this.#busy.add(name);
    taker(name);
  }

  #putReady(name: string): void {
    const lane = this.#laneOf(name);
    const names = this.#ready.get(lane);
    if (names === undefined) this.#ready.set(lane, new Set([name]));
    else names.add(name);
    this.#readyCount++;
  }

  #takeReady(): string | undefined {
    const [lane, names] = this.#ready.entries().next().value ?? [];
    const name = names?.values().next().value;
    if (lane === undefined || names === undefined || name === undefined) return undefined;
    names.delete(name);
    this.#ready.delete(lane);
    if (names.size > 0) this.#ready.set(lane, names);
    this.#readyCount--;
    return name;
  }
}
