/** Entries of one index key in order. Plain arrays are these too. */
export interface Entries<out E> extends Iterable<E> {
  readonly length: number;
  at(place: number): E | undefined;
}

export interface Sortable {
  readonly key: string;
  readonly sort: string;
}

/**
 * Beyond this length, moving the tail of an array costs more than finding the right one of several.
 */
export const MANY = 512;

/**
 * A long sorted list in pieces, so that one entry comes and goes without moving all of the others.
 */
export class SortedEntries<E extends Sortable> implements Entries<E> {
  readonly #pieces: E[][];
  #length: number;

  constructor(sorted: readonly E[]) {
    this.#pieces = [[...sorted]];
    this.#length = sorted.length;
  }

  get length(): number {
    return this.#length;
  }

  at(place: number): E | undefined {
    let left = place;
    for (const piece of this.#pieces) {
      if (left < piece.length) return piece[left];
      left -= piece.length;
    }
    return undefined;
  }

  *[Symbol.iterator](): Iterator<E> {
    for (const piece of this.#pieces) yield* piece;
  }

  insert(entry: E): void {
    const index = this.#pieceFor(entry.sort, entry.key);
    const piece = this.#pieces[index] as E[];
    this.#length += insertInto(piece, entry);
    if (piece.length > MANY) this.#pieces.splice(index + 1, 0, piece.splice(piece.length >>> 1));
  }

  remove(sort: string, key: string): void {
    const index = this.#pieceFor(sort, key);
    const piece = this.#pieces[index] as E[];
    this.#length -= removeFrom(piece, sort, key);
    if (piece.length === 0 && this.#pieces.length > 1) this.#pieces.splice(index, 1);
  }

  /**
   * The first piece whose last entry is not before (sort, key); the last piece when there is none.
   */
  #pieceFor(sort: string, key: string): number {
    let low = 0;
    let high = this.#pieces.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const last = this.#pieces[middle]?.at(-1);
      if (last !== undefined && isBefore(last, sort, key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * Puts an entry in its place, or over the one that has the same place; returns by how much the
 * array grew.
 */
export function insertInto<E extends Sortable>(entries: E[], entry: E): number {
  const index = placeIn(entries, entry.sort, entry.key);
  const present = entries[index];
  if (present !== undefined && present.key === entry.key && present.sort === entry.sort) {
    entries[index] = entry;
    return 0;
  }
  entries.splice(index, 0, entry);
  return 1;
}

/** Takes an entry out; returns by how much the array shrank. */
export function removeFrom<E extends Sortable>(entries: E[], sort: string, key: string): number {
  const index = placeIn(entries, sort, key);
  if (entries[index]?.key !== key) return 0;
  entries.splice(index, 1);
  return 1;
}

/** The first place whose entry is not before (sort, key). */
function placeIn(entries: readonly Sortable[], sort: string, key: string): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(entries[middle] as Sortable, sort, key)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isBefore(entry: Sortable, sort: string, key: string): boolean {
  return entry.sort < sort || (entry.sort === sort && entry.key < key);
}
