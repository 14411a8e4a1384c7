/**
 * The incremental runtime. It knows no domain.
 *
 * A graph is a list of collections in the order in which they were made; each is computed from
 * earlier ones. A change marks as dirty only the nodes that looked at what changed. `settle` walks
 * the list once: a collection is recomputed after everything it can look at, so no node ever sees
 * half of a change, and a node whose result is equal to the one before wakes nobody.
 */
import { Collection, type Computed, Input, type ReadonlyCollection } from "./collection.ts";
import { type Compute, Derived } from "./derived.ts";
import { Index, type IndexPlace } from "./index-collection.ts";
import type { Lookup } from "./lookup.ts";

export class Graph {
  readonly #computed: Computed[] = [];
  #made = 0;
  #recomputed = 0;

  input<V>(name: string): Input<V> {
    return new Input<V>(name, this.#made++);
  }

  /** One value for each value of the source; `undefined` means none. */
  derive<S, V>(
    name: string,
    source: ReadonlyCollection<S>,
    compute: (key: string, value: S, lookup: Lookup) => V | undefined,
  ): ReadonlyCollection<V> {
    return this.expand<S, V>(name, source, (key, value, lookup) => {
      const result = compute(key, value, lookup);
      return result === undefined ? [] : [[key, result]];
    });
  }

  /** Any number of keyed values for each value of the source. */
  expand<S, V>(name: string, source: ReadonlyCollection<S>, compute: Compute<S, V>): ReadonlyCollection<V> {
    const derived = new Derived(name, this.#made++, source, compute);
    this.#computed.push(derived);
    return derived;
  }

  index<V>(
    name: string,
    source: ReadonlyCollection<V>,
    places: (key: string, value: V) => Iterable<IndexPlace>,
  ): Index<V> {
    return new Index(name, this.#made++, source, places);
  }

  /**
   * All values of several collections of one type under one roof; when settled, their keys must not
   * overlap.
   */
  union<V>(name: string, sources: readonly ReadonlyCollection<V>[]): ReadonlyCollection<V> {
    return new Union(name, this.#made++, sources);
  }

  settle(): void {
    for (const collection of this.#computed) this.#recomputed += collection.settle();
  }

  /** Nodes computed since the graph was made: the cost of a change, independent of the machine. */
  get recomputed(): number {
    return this.#recomputed;
  }
}

class Union<V> extends Collection<V> {
  constructor(name: string, order: number, sources: readonly ReadonlyCollection<V>[]) {
    super(name, order);
    for (const source of sources) {
      source.onChange(({ key, after }) => this.store(key, after ?? remaining(sources, key)));
      for (const [key, value] of source.entries()) this.store(key, value);
    }
  }
}

/** A key may move between sources in one step, and its new source may settle before its old one. */
function remaining<V>(sources: readonly ReadonlyCollection<V>[], key: string): V | undefined {
  for (const source of sources) {
    const value = source.get(key);
    if (value !== undefined) return value;
  }
  return undefined;
}
