import { isWildcard } from "../plan/hostname.ts";

interface Keyed {
  readonly id: string;
  readonly hostname: string;
}

/**
 * Items by hostname pattern, found by hash: the name itself, then its suffixes label by label, then
 * the fallback. A lookup costs no more than the longest pattern has labels and characters, whatever
 * the name looks like.
 *
 * Of several items with one pattern the lowest id is found. A plan has no such items; the rule only
 * keeps the answer independent of the order of arrival.
 */
export class PatternIndex<T extends Keyed> {
  readonly #exact: Map<string, T[]> = new Map();
  /**
   * By the part after `*.`; wildcards stand apart from exact names so that a client cannot name
   * one.
   */
  readonly #wildcard: Map<string, T[]> = new Map();
  #fallback: readonly T[] = [];
  // Upper bounds over everything that was ever added: they limit the search and need not be tight.
  #maxLabels = 0;
  #maxSuffix = 0;

  get size(): number {
    return this.#exact.size + this.#wildcard.size + this.#fallback.length;
  }

  add(item: T): void {
    const { hostname } = item;
    if (hostname === "") {
      this.#fallback = inserted(this.#fallback, item);
    } else if (isWildcard(hostname)) {
      const suffix = hostname.slice(2);
      this.#wildcard.set(suffix, inserted(this.#wildcard.get(suffix), item));
      this.#maxLabels = Math.max(this.#maxLabels, suffix.split(".").length);
      this.#maxSuffix = Math.max(this.#maxSuffix, suffix.length);
    } else {
      this.#exact.set(hostname, inserted(this.#exact.get(hostname), item));
    }
  }

  delete(item: T): void {
    const { hostname } = item;
    if (hostname === "") this.#fallback = this.#fallback.filter((other) => other.id !== item.id);
    else if (isWildcard(hostname)) removeFrom(this.#wildcard, hostname.slice(2), item.id);
    else removeFrom(this.#exact, hostname, item.id);
  }

  *values(): Generator<T, void, undefined> {
    for (const items of this.#exact.values()) yield* items;
    for (const items of this.#wildcard.values()) yield* items;
    yield* this.#fallback;
  }

  /** The item with this very pattern. */
  at(pattern: string): T | undefined {
    if (pattern === "") return this.#fallback[0];
    return (isWildcard(pattern) ? this.#wildcard.get(pattern.slice(2)) : this.#exact.get(pattern))?.[0];
  }

  /**
   * The most specific pattern that matches; a missing name is matched by the empty pattern alone.
   */
  find(name: string | undefined): T | undefined {
    if (name === undefined) return this.#fallback[0];
    return this.#exact.get(name)?.[0] ?? this.#bySuffix(name) ?? this.#fallback[0];
  }

  /**
   * The next wider pattern. Whatever else matches a name that `pattern` matches and is less
   * specific covers `pattern`, so walking on from the first find visits every matching pattern in
   * order.
   */
  wider(pattern: string): T | undefined {
    if (pattern === "") return undefined;
    return this.#bySuffix(isWildcard(pattern) ? pattern.slice(2) : pattern) ?? this.#fallback[0];
  }

  #bySuffix(name: string): T | undefined {
    if (this.#wildcard.size === 0) return undefined;
    let dot = this.#leftmostDot(name);
    while (dot > 0) {
      const found = this.#wildcard.get(name.slice(dot + 1));
      if (found !== undefined) return found[0];
      dot = name.indexOf(".", dot + 1);
    }
    return undefined;
  }

  /**
   * The first dot from the left whose suffix is short enough, in labels and in characters, to be a
   * pattern's.
   */
  #leftmostDot(name: string): number {
    const limit = Math.max(1, name.length - this.#maxSuffix - 1);
    let leftmost = -1;
    let from = name.length - 1;
    for (let labels = 0; labels < this.#maxLabels && from >= limit; labels++) {
      const dot = name.lastIndexOf(".", from);
      if (dot < limit) break;
      leftmost = dot;
      from = dot - 1;
    }
    return leftmost;
  }
}

function inserted<T extends Keyed>(items: readonly T[] | undefined, item: T): T[] {
  return items === undefined ? [item] : [...items, item].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function removeFrom<T extends Keyed>(map: Map<string, T[]>, key: string, id: string): void {
  const rest = map.get(key)?.filter((other) => other.id !== id) ?? [];
  if (rest.length === 0) map.delete(key);
  else map.set(key, rest);
}
