import { Collection, type Computed, type Node, type ReadonlyCollection } from "./collection.ts";
import { forgetReads, Lookup } from "./lookup.ts";

/**
 * One source value to any number of keyed values. Keys must be unique across the whole collection.
 */
export type Compute<S, V> = (key: string, value: S, lookup: Lookup) => Iterable<readonly [string, V]>;

/** Most nodes give one value under their own key; that takes no array. */
type Outputs = typeof OWN_KEY | readonly string[];

interface DerivedNode extends Node {
  outputs: Outputs;
}

const OWN_KEY = "own key";
const NO_OUTPUTS: readonly string[] = [];

/** Values computed from the values of another collection and whatever the computation looks up. */
export class Derived<S, V> extends Collection<V> implements Computed {
  readonly #source: ReadonlyCollection<S>;
  readonly #compute: Compute<S, V>;
  readonly #nodes: Map<string, DerivedNode> = new Map();
  readonly #dirty: Set<string> = new Set();

  constructor(name: string, order: number, source: ReadonlyCollection<S>, compute: Compute<S, V>) {
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
      for (const output of keysOf(node)) this.store(output, undefined);
      return;
    }
    if (node === undefined) {
      node = { collection: this, key, reads: [], outputs: NO_OUTPUTS };
      this.#nodes.set(key, node);
    }
    const lookup = new Lookup(node);
    const results = [...this.#compute(key, value, lookup)];
    lookup.finish();
    const before = keysOf(node);
    const after = results.map(([output]) => output);
    node.outputs = after.length === 0 ? NO_OUTPUTS : after.length === 1 && after[0] === key ? OWN_KEY : after;
    for (const output of before) if (!after.includes(output)) this.store(output, undefined);
    for (const [output, result] of results) this.store(output, result);
  }
}

function keysOf({ key, outputs }: DerivedNode): readonly string[] {
  return outputs === OWN_KEY ? [key] : outputs;
}
