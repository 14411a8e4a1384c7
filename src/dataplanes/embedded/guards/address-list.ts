import { type IpAddress, type IpRange, parseRange } from "./ip-address.ts";

/** Ranges of addresses, in a form in which ten thousand are searched in a few steps. */
export class AddressList {
  readonly #ipv4: Intervals;
  readonly #ipv6: Intervals;

  private constructor(ranges: readonly IpRange[]) {
    this.#ipv4 = new Intervals(
      1,
      ranges.filter(({ first }) => first.length === 1),
    );
    this.#ipv6 = new Intervals(
      4,
      ranges.filter(({ first }) => first.length === 4),
    );
  }

  /** Undefined when one of the ranges is none: nobody knows what such a list was to say. */
  static of(texts: readonly string[]): AddressList | undefined {
    const ranges: IpRange[] = [];
    for (const text of texts) {
      const range = parseRange(text);
      if (range === undefined) return undefined;
      ranges.push(range);
    }
    return new AddressList(ranges);
  }

  includes(address: IpAddress): boolean {
    return (address.length === 1 ? this.#ipv4 : this.#ipv6).include(address);
  }
}

/** Disjoint and in order, so that only the last one that begins before an address can have it. */
class Intervals {
  readonly #width: number;
  readonly #firsts: Uint32Array;
  readonly #lasts: Uint32Array;
  readonly #count: number;

  constructor(width: number, ranges: readonly IpRange[]) {
    const merged: { readonly first: IpAddress; last: IpAddress }[] = [];
    for (const { first, last } of ranges.toSorted((a, b) => compare(a.first, b.first))) {
      const before = merged.at(-1);
      if (before === undefined || compare(first, before.last) > 0) merged.push({ first, last });
      else if (compare(last, before.last) > 0) before.last = last;
    }
    this.#width = width;
    this.#count = merged.length;
    this.#firsts = Uint32Array.from(merged.flatMap(({ first }) => first));
    this.#lasts = Uint32Array.from(merged.flatMap(({ last }) => last));
  }

  include(address: IpAddress): boolean {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compareAt(this.#firsts, middle, address) <= 0) low = middle + 1;
      else high = middle;
    }
    return low > 0 && this.#compareAt(this.#lasts, low - 1, address) >= 0;
  }

  #compareAt(bounds: Uint32Array, index: number, address: IpAddress): number {
    for (let word = 0; word < this.#width; word++) {
      const difference = (bounds[index * this.#width + word] ?? 0) - (address[word] ?? 0);
      if (difference !== 0) return difference;
    }
    return 0;
  }
}

function compare(a: IpAddress, b: IpAddress): number {
  for (const [index, word] of a.entries()) {
    const difference = word - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
