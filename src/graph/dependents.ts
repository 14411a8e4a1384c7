import type { Node } from "./collection.ts";

/**
 * Which computed nodes have looked at which key. Most keys have one reader, so a lone reader is stored bare: at 40,000 routes the
 * sets would otherwise be the largest thing in memory.
 */
export class Dependents {
  readonly #readers: Map<string, Node | Set<Node>> = new Map();

  add(key: string, node: Node): boolean {
    const present = this.#readers.get(key);
    if (present === undefined) {
      this.#readers.set(key, node);
      return true;
    }
    if (present instanceof Set) {
      const before = present.size;
      present.add(node);
      return present.size > before;
    }
    if (present === node) return false;
    this.#readers.set(key, new Set([present, node]));
    return true;
  }

  remove(key: string, node: Node): void {
    const present = this.#readers.get(key);
    if (present === node) this.#readers.delete(key);
    else if (present instanceof Set) {
      present.delete(node);
      if (present.size === 0) this.#readers.delete(key);
    }
  }

  has(key: string): boolean {
    return this.#readers.has(key);
  }

  invalidate(key: string): void {
    const present = this.#readers.get(key);
    if (present === undefined) return;
    if (present instanceof Set) for (const node of present) node.collection.markDirty(node.key);
    else present.collection.markDirty(present.key);
  }
}
