import { Dependents, type Slot } from "./dependents.ts";
import { sameValue } from "./equality.ts";

/** One computed value: where it lives and what it looked at. */
export interface Node {
  readonly collection: Computed;
  readonly key: string;
  reads: readonly Slot[];
}

/** The part of a computed collection that the runtime drives. */
export interface Computed {
  readonly name: string;
  readonly order: number;
  markDirty(key: string): void;
  /** Recomputes what is dirty; returns how many nodes were computed. */
  settle(): number;
}

export interface EntryChange<V> {
  readonly key: string;
  readonly before: V | undefined;
  readonly after: V | undefined;
}

/** What others may do with a collection: look up, derive from, index and observe. */
export interface ReadonlyCollection<out V> {
  readonly name: string;
  /**
   * Position in the graph: a computation may only look at collections that stand before its own.
   */
  readonly order: number;
  readonly readers: Dependents;
  readonly size: number;
  get(key: string): V | undefined;
  entries(): IterableIterator<[string, V]>;
  /** Called synchronously for every real change, before any later collection settles. */
  onChange(listener: (change: EntryChange<V>) => void): void;
}

/** A keyed set of values, and the announcing of their changes. */
export abstract class Collection<V> implements ReadonlyCollection<V> {
  readonly name: string;
  readonly order: number;
  readonly readers: Dependents = new Dependents();
  readonly #values: Map<string, V> = new Map();
  readonly #listeners: ((change: EntryChange<V>) => void)[] = [];

  constructor(name: string, order: number) {
    this.name = name;
    this.order = order;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  get size(): number {
    return this.#values.size;
  }

  entries(): IterableIterator<[string, V]> {
    return this.#values.entries();
  }

  onChange(listener: (change: EntryChange<V>) => void): void {
    this.#listeners.push(listener);
  }

  /** Early cut-off: an equal value changes nothing and wakes nobody. */
  protected store(key: string, after: V | undefined): void {
    const before = this.#values.get(key);
    if (sameValue(before, after)) return;
    if (after === undefined) this.#values.delete(key);
    else this.#values.set(key, after);
    this.announce({ key, before, after });
  }

  protected announce(change: EntryChange<V>): void {
    this.readers.invalidate(change.key);
    for (const listener of this.#listeners) listener(change);
  }
}

/** Values that come from outside the graph. */
export class Input<V> extends Collection<V> {
  set(key: string, value: V | undefined): void {
    this.store(key, value);
  }
}
