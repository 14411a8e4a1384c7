/**
 * Ranges of addresses, in one space of 128 bits: an IPv4 address is the IPv6 address that maps it
 * (RFC 4291, 2.5.5.2), so that both ways to write it are one address. A range of IPv6 does not
 * contain mapped addresses.
 */

import { isIPv4, isIPv6 } from "node:net";

export interface AddressRange {
  /** The first address of the range. */
  readonly first: bigint;
  /** Bits that all addresses of it have in common. */
  readonly length: number;
}

const BITS = 128;
/** Of the prefix of addresses that map IPv4: ::ffff:0:0/96. */
const MAPPED_LENGTH = 96;
const MAPPED = 0xffffn << 32n;

/** Undefined: one of them is no range in CIDR notation. */
export function readRanges(texts: readonly string[]): readonly AddressRange[] | undefined {
  const ranges = [...new Set(texts)].map(readRange);
  return ranges.every((range) => range !== undefined) ? united(ranges) : undefined;
}

/** Without what is no range. */
export function readableRanges(texts: readonly string[]): readonly AddressRange[] {
  return united([...new Set(texts)].map(readRange).filter((range) => range !== undefined));
}

/**
 * As they are written, in ranges that have nothing in common. What a wider one covers goes first:
 * of all ranges around the mapped addresses one is left, and only that one becomes many.
 */
function united(ranges: readonly AddressRange[]): readonly AddressRange[] {
  const [mapped, others] = [ranges.filter(isMapped), ranges.filter((range) => !isMapped(range))];
  return [...uncovered(mapped), ...uncovered(others).flatMap(withoutMapped)];
}

function isMapped(range: AddressRange): boolean {
  return isWithin(range, { first: MAPPED, length: MAPPED_LENGTH });
}

function readRange(text: string): AddressRange | undefined {
  const [, address = "", digits = ""] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const length = Number(digits);
  if (isIPv4(address))
    return length > 32 ? undefined : masked(MAPPED | ipv4(address), MAPPED_LENGTH + length);
  return !isIPv6(address) || length > BITS ? undefined : masked(ipv6(address), length);
}

function ipv4(address: string): bigint {
  return address.split(".").reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

function ipv6(address: string): bigint {
  const plain = address.replace(/[^:]*\.[^:]*$/, (tail) => {
    const bits = ipv4(tail);
    return `${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}`;
  });
  const [head = "", tail] = plain.split("::");
  const before = head.split(":").filter((group) => group !== "");
  const after = (tail ?? "").split(":").filter((group) => group !== "");
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return [...before, ...zeros, ...after].reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

function masked(address: bigint, length: number): AddressRange {
  const rest = BigInt(BITS - length);
  return { first: (address >> rest) << rest, length };
}

/** A range around the mapped addresses, as the ranges beside them. */
function withoutMapped(range: AddressRange): readonly AddressRange[] {
  if (range.length >= MAPPED_LENGTH || !isWithin({ first: MAPPED, length: MAPPED_LENGTH }, range))
    return [range];
  return Array.from({ length: MAPPED_LENGTH - range.length }, (_, index) => {
    const length = range.length + index + 1;
    return masked(MAPPED ^ (1n << BigInt(BITS - length)), length);
  });
}

function isWithin(inner: AddressRange, outer: AddressRange): boolean {
  return inner.length >= outer.length && masked(inner.first, outer.length).first === outer.first;
}

/** Ranges that can be asked for another one, in as many steps as they have lengths. */
class RangeSet {
  readonly #firsts: Map<number, Set<bigint>> = new Map();

  constructor(ranges: Iterable<AddressRange>) {
    for (const { first, length } of ranges)
      this.#firsts.set(length, (this.#firsts.get(length) ?? new Set()).add(first));
  }

  contains(range: AddressRange): boolean {
    for (const [length, firsts] of this.#firsts)
      if (length <= range.length && firsts.has(masked(range.first, length).first)) return true;
    return false;
  }
}

/** Without those that are within another one; in order, so that the wider one comes before them. */
function uncovered(ranges: readonly AddressRange[]): readonly AddressRange[] {
  const found: AddressRange[] = [];
  let last: AddressRange | undefined;
  for (const range of ranges.toSorted(byFirst)) {
    if (last !== undefined && isWithin(range, last)) continue;
    found.push(range);
    last = range;
  }
  return found;
}

function byFirst(a: AddressRange, b: AddressRange): number {
  if (a.first === b.first) return a.length - b.length;
  return a.first < b.first ? -1 : 1;
}

/** Of two ranges one is within the other, or they have nothing in common. */
function intersection(a: readonly AddressRange[], b: readonly AddressRange[]): readonly AddressRange[] {
  const [inA, inB] = [new RangeSet(a), new RangeSet(b)];
  return uncovered([
    ...a.filter((range) => inB.contains(range)),
    ...b.filter((range) => inA.contains(range)),
  ]);
}

/**
 * Who is let in. The narrowest range that an address is in decides, of `allow` and `deny` together;
 * who is in none is let in if `allow` is absent.
 */
export interface Admission {
  readonly allow?: readonly AddressRange[];
  readonly deny: readonly AddressRange[];
}

/** Who passes all of several lists, each of which denies before it allows. */
export function admissionOf(
  lists: readonly { readonly allow?: readonly AddressRange[]; readonly deny: readonly AddressRange[] }[],
): Admission {
  const deny = uncovered(lists.flatMap((list) => list.deny));
  const allows = lists.flatMap(({ allow }) => (allow === undefined ? [] : [allow]));
  if (allows.length === 0) return { deny };
  const denied = new RangeSet(deny);
  const allow = allows.reduce(intersection).filter((range) => !denied.contains(range));
  return { allow, deny };
}

/** As Envoy writes ranges: what maps IPv4 stands in both forms. */
export function cidrsOf(
  ranges: readonly AddressRange[],
): readonly (readonly [address: string, length: number])[] {
  return ranges.flatMap(({ first, length }) => {
    const long = [written(first), length] as const;
    if (length < MAPPED_LENGTH || first >> 32n !== MAPPED >> 32n) return [long];
    const bytes = [24n, 16n, 8n, 0n].map((shift) => (first >> shift) & 0xffn);
    return [[bytes.join("."), length - MAPPED_LENGTH] as const, long];
  });
}

function written(address: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => (address >> BigInt(112 - 16 * index)) & 0xffffn);
  return groups.map((group) => group.toString(16)).join(":");
}
