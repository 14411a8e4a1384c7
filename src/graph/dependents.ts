import type { Node } from "./collection.ts";

/** One key that computations have read, and those computations. */
export interface Slot {
  readonly dependents: Dependents;
  readonly key: string;
  readers: Node | readonly Node[] | Set<Node>;
}

/** Beyond this number of readers a set is worth its size. */
const FEW = 8;

/**
 * Which computed nodes have looked at which key. Most keys have one reader or a few, so these are
 * stored bare or as an array: at 40,000 routes sets would otherwise be the largest thing in memory.
 * Nodes keep the slots, not the keys, for the same reason.
 */
export class Dependents {
  readonly #slots: Map<string, Slot> = new Map();

  /** The slot, when the reader is new to it. */
  add(key: string, node: Node): Slot | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) {
      const made: Slot = { dependents: this, key, readers: node };
      this.#slots.set(key, made);
      return made;
    }
    const { readers } = slot;
    if (readers instanceof Set) {
      if (readers.has(node)) return undefined;
      readers.add(node);
    } else if (isFew(readers)) {
      if (readers.includes(node)) return undefined;
      slot.readers = readers.length < FEW ? [...readers, node] : new Set(readers).add(node);
    } else {
      if (readers === node) return undefined;
      slot.readers = [readers, node];
    }
    return slot;
  }

  remove(slot: Slot, node: Node): void {
    const { readers } = slot;
    if (readers instanceof Set) {
      readers.delete(node);
      if (readers.size === 0) this.#slots.delete(slot.key);
    } else if (isFew(readers)) {
      const others = readers.filter((reader) => reader !== node);
      if (others.length === 0) this.#slots.delete(slot.key);
      else slot.readers = others;
    } else if (readers === node) this.#slots.delete(slot.key);
  }

  invalidate(key: string): void {
    const readers = this.#slots.get(key)?.readers;
    if (readers === undefined) return;
    if (readers instanceof Set || isFew(readers))
      for (const node of readers) node.collection.markDirty(node.key);
    else readers.collection.markDirty(readers.key);
  }
}

function isFew(readers: Slot["readers"]): readers is readonly Node[] {
  return Array.isArray(readers);
}
