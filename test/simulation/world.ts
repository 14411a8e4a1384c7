/**
 * A world with a clock and a chance of its own. While a history runs, timers, the clock and
 * `Math.random` of the whole process are the world's: the code under test is the code that runs in
 * production, and the same seed gives the same history.
 *
 * One event happens at a time, and everything that follows from it at once (promises) is done
 * before the next. An event belongs to one simulated process, and so do the timers that it starts:
 * a process that is killed has no more of them.
 */
import { Random } from "./random.ts";

export class SimulatedProcess {
  readonly name: string;
  isAlive = true;
  /** Its event loop hangs: whatever should happen in it waits. */
  isFrozen = false;
  readonly backlog: Event[] = [];

  constructor(name: string) {
    this.name = name;
  }
}

interface Event {
  at: number;
  order: number;
  readonly owner: SimulatedProcess | undefined;
  readonly act: () => void;
  isCancelled: boolean;
}

/** 2026-01-01T00:00:00Z. */
const EPOCH = 1_767_225_600_000;
const MOST_EVENTS = 400_000;
/** The test runner has to speak, too. */
const BREATH_EVENTS = 1_000;
const realSetImmediate = globalThis.setImmediate;

export class World {
  readonly random: Random;
  readonly story: string[] = [];
  now = 0;
  events = 0;
  #queue: Event[] = [];
  #order = 0;
  #current: SimulatedProcess | undefined;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /** A line of the story, in plain words. */
  tell(who: string, what: string): void {
    this.story.push(`${(this.now / 1000).toFixed(3).padStart(9)} s  ${who.padEnd(14)} ${what}`);
  }

  get date(): number {
    return EPOCH + this.now;
  }

  /** Happens after so long, in the process that asks for it or in another one. */
  after(ms: number, act: () => void, owner: SimulatedProcess | undefined = this.#current): Event {
    const at = this.now + Math.max(0, Number.isFinite(ms) ? ms : 0);
    const event: Event = { at, order: this.#order++, owner, act, isCancelled: false };
    this.#push(event);
    return event;
  }

  /** Happens in no process: the network, a person, the cluster itself. */
  outside(ms: number, act: () => void): void {
    const before = this.#current;
    this.#current = undefined;
    this.after(ms, act, undefined);
    this.#current = before;
  }

  /** The process goes on with all that it has missed, in order. */
  thaw(process: SimulatedProcess): void {
    process.isFrozen = false;
    for (const event of process.backlog.splice(0)) {
      event.at = this.now;
      event.order = this.#order++;
      this.#push(event);
    }
  }

  /** Lets time pass until then. */
  async runUntil(time: number): Promise<void> {
    for (let next = this.#queue[0]; next !== undefined && next.at <= time; next = this.#queue[0]) {
      this.#pop();
      if (next.isCancelled || next.owner?.isAlive === false) continue;
      this.now = Math.max(this.now, next.at);
      if (next.owner?.isFrozen === true) {
        next.owner.backlog.push(next);
        continue;
      }
      if (++this.events > MOST_EVENTS) throw new Error("the history does not end: too many events");
      this.#current = next.owner;
      next.act();
      // All promises that follow from the event settle before the next tick.
      await new Promise<void>((resolve) => {
        if (this.events % BREATH_EVENTS === 0) realSetImmediate(resolve);
        else process.nextTick(resolve);
      });
      this.#current = undefined;
    }
    this.now = time;
  }

  /** A binary heap: by time, then by the order in which they were asked for. */
  #push(event: Event): void {
    const queue = this.#queue;
    let at = queue.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, queue[parent] as Event)) break;
      queue[at] = queue[parent] as Event;
      at = parent;
    }
    queue[at] = event;
  }

  #pop(): void {
    const queue = this.#queue;
    const last = queue.pop() as Event;
    if (queue.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= queue.length) break;
      if (child + 1 < queue.length && isBefore(queue[child + 1] as Event, queue[child] as Event)) child++;
      if (!isBefore(queue[child] as Event, last)) break;
      queue[at] = queue[child] as Event;
      at = child;
    }
    queue[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** What `setTimeout` gives. */
class WorldTimer {
  readonly #start: () => Event;
  #event: Event;

  constructor(start: () => Event) {
    this.#start = start;
    this.#event = start();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    this.#event.isCancelled = true;
    this.#event = this.#start();
    return this;
  }

  cancel(): void {
    this.#event.isCancelled = true;
  }
}

let active: World | undefined;

/** The world whose history runs. */
export function theWorld(): World {
  if (active === undefined) throw new Error("no history runs");
  return active;
}

const REAL = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  Date: globalThis.Date,
};
const realRandom = Math.random;
const realNow = performance.now;
const realTimeout = AbortSignal.timeout;

/** Runs with clock, timers and chance of this world. */
export async function within<T>(world: World, run: (world: World) => Promise<T>): Promise<T> {
  active = world;
  const clear = (timer: unknown): void => {
    if (timer instanceof WorldTimer) timer.cancel();
  };
  const repeat = (act: () => void, ms: number): WorldTimer => {
    const timer: WorldTimer = new WorldTimer(() =>
      world.after(Math.max(1, ms), () => {
        timer.refresh();
        act();
      }),
    );
    return timer;
  };
  Object.assign(globalThis, {
    setTimeout: (act: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
      new WorldTimer(() => world.after(ms, () => act(...given))),
    clearTimeout: clear,
    setInterval: repeat,
    clearInterval: clear,
    setImmediate: (act: () => void) => new WorldTimer(() => world.after(0, act)),
    Date: worldDate(world),
  });
  Math.random = () => world.random.next();
  performance.now = () => world.now;
  AbortSignal.timeout = (ms) => {
    const ended = new AbortController();
    world.after(ms, () => ended.abort(new DOMException("no answer in time", "TimeoutError")));
    return ended.signal;
  };
  try {
    return await run(world);
  } finally {
    // What still follows from the end belongs to this world, not to the next.
    await new Promise<void>((resolve) => realSetImmediate(resolve));
    active = undefined;
    Object.assign(globalThis, REAL);
    Math.random = realRandom;
    performance.now = realNow;
    AbortSignal.timeout = realTimeout;
  }
}

function worldDate(world: World): DateConstructor {
  return class extends REAL.Date {
    constructor(...given: [] | [string | number | Date]) {
      super(...((given.length === 0 ? [world.date] : given) as [number]));
    }

    static override now(): number {
      return world.date;
    }
  } as DateConstructor;
}
