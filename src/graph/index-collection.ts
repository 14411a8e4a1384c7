import { Collection, type EntryChange, type ReadonlyCollection } from "./collection.ts";
import { Dependents } from "./dependents.ts";
import { type Entries, insertInto, MANY, removeFrom, SortedEntries } from "./sorted-entries.ts";

/**
 * Where one value of the source belongs: under which key, and at which place among its neighbours.
 */
export interface IndexPlace {
  readonly at: string;
  /** Entries are ordered by this, then by key. */
  readonly sort?: string;
}

export interface IndexEntry<V> {
  readonly key: string;
  readonly sort: string;
  readonly value: V;
}

/**
 * The values of a collection grouped and sorted by keys computed from them. It follows its source
 * at once, so it has no settling of its own. The entries of a key are changed in place:
 * computations read it and never keep it.
 */
export class Index<V> extends Collection<Entries<IndexEntry<V>>> {
  readonly firstReaders: Dependents = new Dependents();
  readonly countReaders: Dependents = new Dependents();
  readonly #places: (key: string, value: V) => Iterable<IndexPlace>;
  readonly #entries: Map<string, IndexEntry<V>[] | SortedEntries<IndexEntry<V>>> = new Map();

  constructor(
    name: string,
    order: number,
    source: ReadonlyCollection<V>,
    places: (key: string, value: V) => Iterable<IndexPlace>,
  ) {
    super(name, order);
    this.#places = places;
    source.onChange((change) => this.#follow(change));
    for (const [key, after] of source.entries()) this.#follow({ key, before: undefined, after });
  }

  override get(key: string): Entries<IndexEntry<V>> | undefined {
    return this.#entries.get(key);
  }

  override get size(): number {
    return this.#entries.size;
  }

  override entries(): IterableIterator<[string, Entries<IndexEntry<V>>]> {
    return this.#entries.entries();
  }

  #follow({ key, before, after }: EntryChange<V>): void {
    const left = before === undefined ? [] : [...this.#places(key, before)];
    const entered = after === undefined ? [] : [...this.#places(key, after)];
    const touched = new Map<string, { first: IndexEntry<V> | undefined; count: number }>();
    for (const { at } of [...left, ...entered]) {
      if (!touched.has(at)) {
        const present = this.#entries.get(at);
        touched.set(at, { first: present?.at(0), count: present?.length ?? 0 });
      }
    }
    for (const { at, sort } of left) this.#remove(at, key, sort ?? "");
    for (const { at, sort } of entered) this.#insert(at, { key, sort: sort ?? "", value: after as V });
    for (const [at, was] of touched) this.#notify(at, was);
  }

  #remove(at: string, key: string, sort: string): void {
    const present = this.#entries.get(at);
    if (present === undefined) return;
    if (Array.isArray(present)) removeFrom(present, sort, key);
    else present.remove(sort, key);
    if (present.length === 0) this.#entries.delete(at);
  }

  #insert(at: string, entry: IndexEntry<V>): void {
    const present = this.#entries.get(at);
    if (present === undefined) this.#entries.set(at, [entry]);
    else if (!Array.isArray(present)) present.insert(entry);
    else {
      insertInto(present, entry);
      if (present.length > MANY) this.#entries.set(at, new SortedEntries(present));
    }
  }

  #notify(at: string, was: { first: IndexEntry<V> | undefined; count: number }): void {
    const now = this.#entries.get(at);
    if (now?.at(0) !== was.first) this.firstReaders.invalidate(at);
    if ((now?.length ?? 0) !== was.count) this.countReaders.invalidate(at);
    this.announce({ key: at, before: undefined, after: now });
  }
}
