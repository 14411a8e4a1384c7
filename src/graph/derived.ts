import { Collection, type Computed, type Node, type Source } from "./collection.ts";
import { forgetReads, Lookup } from "./lookup.ts";

/** One source value to any number of keyed values. Keys must be unique across the whole collection. */
export type Compute<S, V> = (key: string, value: S, lookup: Lookup) => Iterable<readonly [string, V]>;

interface DerivedNode extends Node {
  outputs: readonly string[];
}

const NO_OUTPUTS: readonly string[] = [];

/** Values computed from the values of another collection and whatever the computation looks up. */
export class Derived<S, V> extends Collection<V> implements Computed {
  readonly #source: Source<S>;
  readonly #compute: Compute<S, V>;
  readonly #nodes: Map<string, DerivedNode> = new Map();
  readonly #dirty: Set<string> = new Set();

  constructor(name: string, order: number, source: Source<S>, compute: Compute<S, V>) {
    super(name, order);
    this.#source = source;
    this.#compute = compute;
    source.onChange((change) => this.#dirty.add(change.key));
    for (const [key] of source.entries()) this.#dirty.add(key);
  }

  markDirty(key: string): void {
    this.#dirty.add(key);
  }

  settle(): number {
    const computed = this.#dirty.size;
    for (const key of this.#dirty) this.#recompute(key);
    this.#dirty.clear();
    return computed;
  }

  #recompute(key: string): void {
    const value = this.#source.get(key);
    let node = this.#nodes.get(key);
    if (node !== undefined) forgetReads(node);
    if (value === undefined) {
      if (node === undefined) return;
      this.#nodes.delete(key);
      for (const output of node.outputs) this.store(output, undefined);
      return;
    }
    if (node === undefined) {
      node = { collection: this, key, reads: [], outputs: NO_OUTPUTS };
      this.#nodes.set(key, node);
    }
    const before = node.outputs;
    const after: string[] = [];
    const values: V[] = [];
    for (const [output, result] of this.#compute(key, value, new Lookup(node))) {
      after.push(output);
      values.push(result);
    }
    node.outputs = after.length === 0 ? NO_OUTPUTS : after;
    for (const output of before) if (!after.includes(output)) this.store(output, undefined);
    for (let i = 0; i < after.length; i++) this.store(after[i] as string, values[i] as V);
  }
}
