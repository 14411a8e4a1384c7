import type { Node, ReadonlyCollection } from "./collection.ts";
import type { Dependents, Slot } from "./dependents.ts";
import type { Index, IndexEntry } from "./index-collection.ts";

const NO_READS: readonly Slot[] = [];

/**
 * What a computation may look at besides its own source value. Every look is recorded, and a change
 * of what was seen recomputes the node.
 */
export class Lookup {
  readonly #node: Node;
  readonly #reads: Slot[] = [];

  constructor(node: Node) {
    this.#node = node;
  }

  /**
   * Called once, after the computation. The copy drops the spare room of an array that grew: it is
   * kept as long as the node.
   */
  finish(): void {
    this.#node.reads = this.#reads.length === 0 ? NO_READS : this.#reads.slice();
  }

  get<V>(collection: ReadonlyCollection<V>, key: string): V | undefined {
    this.#record(collection, collection.readers, key);
    return collection.get(key);
  }

  /** The values of all entries, in order. */
  all<V>(index: Index<V>, key: string): readonly V[] {
    const entries = this.get(index, key);
    return entries === undefined ? [] : Array.from(entries, ({ value }) => value);
  }

  /** The entry that sorts first, without depending on the others. */
  first<V>(index: Index<V>, key: string): IndexEntry<V> | undefined {
    this.#record(index, index.firstReaders, key);
    return index.get(key)?.at(0);
  }

  /** How many entries there are, without depending on which. */
  count<V>(index: Index<V>, key: string): number {
    this.#record(index, index.countReaders, key);
    return index.get(key)?.length ?? 0;
  }

  #record(
    collection: { readonly name: string; readonly order: number },
    readers: Dependents,
    key: string,
  ): void {
    const node = this.#node;
    if (collection.order >= node.collection.order) {
      throw new Error(
        `${node.collection.name} looks ahead at ${collection.name}: collections settle in order`,
      );
    }
    const slot = readers.add(key, node);
    if (slot !== undefined) this.#reads.push(slot);
  }
}

/** Forgets what a node has looked at, before it is computed again or goes away. */
export function forgetReads(node: Node): void {
  for (const slot of node.reads) slot.dependents.remove(slot, node);
  node.reads = NO_READS;
}
