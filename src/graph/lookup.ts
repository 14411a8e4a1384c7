import type { Node, Source } from "./collection.ts";
import type { Dependents } from "./dependents.ts";
import type { Index, IndexEntry } from "./index-collection.ts";

/** What a computation may look at besides its own source value. Every look is recorded, and a change of what was seen recomputes the node. */
export class Lookup {
  readonly #node: Node;

  constructor(node: Node) {
    this.#node = node;
  }

  get<V>(collection: Source<V>, key: string): V | undefined {
    this.#record(collection, collection.readers, key);
    return collection.get(key);
  }

  /** The entry that sorts first, without depending on the others. */
  first<V>(index: Index<V>, key: string): IndexEntry<V> | undefined {
    this.#record(index, index.firstReaders, key);
    return index.get(key)?.[0];
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
    if (readers.add(key, node)) node.reads.push(readers, key);
  }
}

/** Forgets what a node has looked at, before it is computed again or goes away. */
export function forgetReads(node: Node): void {
  const reads = node.reads;
  for (let i = 0; i < reads.length; i += 2) (reads[i] as Dependents).remove(reads[i + 1] as string, node);
  node.reads = [];
}
