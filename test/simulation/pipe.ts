import type { SimulatedProcess, World } from "./world.ts";

export interface PipeOptions<M> {
  /** Where it leads. */
  readonly to: SimulatedProcess;
  readonly delay: () => number;
  /** Nothing gets through at the moment: it is sent again until it does. */
  readonly isCut: () => boolean;
  readonly deliver: (message: M) => void;
  /** Whether a message arrives a second time, right behind itself. */
  readonly isDoubled?: () => boolean;
}

const AGAIN_MS = 200;

/** One direction of a connection: everything arrives in order, late, until the end. */
export class Pipe<M> {
  readonly #world: World;
  readonly #options: PipeOptions<M>;
  readonly #underway: { readonly at: number; readonly message: M }[] = [];
  #arriving = 0;
  #isEnded = false;

  constructor(world: World, options: PipeOptions<M>) {
    this.#world = world;
    this.#options = options;
  }

  get underway(): number {
    return this.#underway.length;
  }

  /** Since when the oldest message should have arrived; undefined where none is late. */
  get lateSince(): number | undefined {
    const at = this.#underway[0]?.at;
    return at !== undefined && at < this.#world.now ? at : undefined;
  }

  send(message: M): void {
    if (this.#isEnded) return;
    this.#arriving = Math.max(this.#arriving, this.#world.now + this.#options.delay());
    this.#underway.push({ at: this.#arriving, message });
    if (this.#underway.length === 1) this.#await(this.#arriving - this.#world.now);
  }

  end(): void {
    this.#isEnded = true;
    this.#underway.length = 0;
  }

  #await(ms: number): void {
    this.#world.after(ms, () => this.#arrive(), this.#options.to);
  }

  #arrive(): void {
    const next = this.#underway[0];
    if (this.#isEnded || next === undefined) return;
    if (this.#options.isCut()) {
      this.#await(AGAIN_MS);
      return;
    }
    this.#underway.shift();
    const following = this.#underway[0];
    if (following !== undefined) this.#await(Math.max(0, following.at - this.#world.now));
    this.#options.deliver(next.message);
    if (this.#options.isDoubled?.() === true && !this.#isEnded) this.#options.deliver(next.message);
  }
}
