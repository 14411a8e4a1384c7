/** Names of things to do: each at most once in the queue and at most once under way, whatever is asked meanwhile. */
export class WorkQueue {
  readonly #ready = new Set<string>();
  readonly #timers = new Map<string, { readonly at: number; readonly timer: NodeJS.Timeout }>();
  readonly #busy = new Set<string>();
  /** Asked for while under way: comes again after that. */
  readonly #again = new Map<string, number>();
  readonly #waiting: ((name: string | undefined) => void)[] = [];
  #closed = false;

  get size(): number {
    return this.#ready.size + this.#timers.size + this.#busy.size;
  }

  /** An earlier time wins over a later one. */
  add(name: string, delayMs = 0): void {
    if (this.#closed) return;
    if (this.#busy.has(name)) {
      this.#again.set(name, Math.min(delayMs, this.#again.get(name) ?? Number.POSITIVE_INFINITY));
      return;
    }
    if (this.#ready.has(name)) return;
    const at = performance.now() + delayMs;
    const timed = this.#timers.get(name);
    if (timed !== undefined) {
      if (timed.at <= at) return;
      clearTimeout(timed.timer);
      this.#timers.delete(name);
    }
    if (delayMs <= 0) this.#offer(name);
    else this.#timers.set(name, { at, timer: setTimeout(() => this.#due(name), delayMs) });
  }

  /** The next name; undefined when the queue is closed. `done` must follow. */
  next(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    for (const name of this.#ready) {
      this.#ready.delete(name);
      this.#busy.add(name);
      return Promise.resolve(name);
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  done(name: string): void {
    this.#busy.delete(name);
    const delay = this.#again.get(name);
    this.#again.delete(name);
    if (delay !== undefined) this.add(name, delay);
  }

  close(): void {
    this.#closed = true;
    for (const { timer } of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#ready.clear();
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }

  #due(name: string): void {
    this.#timers.delete(name);
    this.#offer(name);
  }

  #offer(name: string): void {
    const taker = this.#waiting.shift();
    if (taker === undefined) {
      this.#ready.add(name);
      return;
    }
    this.#busy.add(name);
    taker(name);
  }
}
