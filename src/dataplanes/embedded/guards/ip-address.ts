import { isIP } from "node:net";

/**
 * An address as 32-bit words: one of IPv4, four of IPv6. An IPv4-mapped IPv6 address is the IPv4
 * address that it stands for.
 */
export type IpAddress = readonly number[];

export interface IpRange {
  readonly first: IpAddress;
  readonly last: IpAddress;
}

const MAPPED = 0xffff;
const MAPPED_BITS = 96;

/** Undefined for what is no address; the zone of a link-local address does not count. */
export function addressWords(text: string): IpAddress | undefined {
  const family = isIP(text);
  if (family === 0) return undefined;
  if (family === 4) return [ipv4Word(text)];
  const words = ipv6Words(text);
  return isMapped(words) ? words.slice(3) : words;
}

/**
 * CIDR notation; bits behind the prefix do not count. Undefined for what is none, and for
 * IPv4-mapped ranges, which nothing could be in.
 */
export function parseRange(text: string): IpRange | undefined {
  const slash = text.indexOf("/");
  const address = text.slice(0, Math.max(0, slash));
  const digits = text.slice(slash + 1);
  const family = address.includes("%") ? 0 : isIP(address);
  const bits = Number(digits);
  if (family === 0 || !/^(0|[1-9]\d{0,2})$/.test(digits) || bits > (family === 4 ? 32 : 128))
    return undefined;
  const words = family === 4 ? [ipv4Word(address)] : ipv6Words(address);
  if (family === 6 && isMapped(words) && bits >= MAPPED_BITS) return undefined;
  const masks = words.map((_word, index) => maskOf(bits - index * 32));
  return {
    first: words.map((word, index) => (word & (masks[index] ?? 0)) >>> 0),
    last: words.map((word, index) => (word | ~(masks[index] ?? 0)) >>> 0),
  };
}

export function ipv4Text(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`;
}

function isMapped([first, second, third]: IpAddress): boolean {
  return first === 0 && second === 0 && third === MAPPED;
}

/** The first `bits` bits of a word, none below 0 and all beyond 32. */
function maskOf(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? 0xffffffff : (0xffffffff << (32 - bits)) >>> 0;
}

function ipv4Word(text: string): number {
  let word = 0;
  for (const part of text.split(".")) word = word * 256 + Number(part);
  return word;
}

function ipv6Words(text: string): IpAddress {
  const zone = text.indexOf("%");
  const [front = "", back] = (zone < 0 ? text : text.slice(0, zone)).split("::");
  const before = groupsOf(front);
  const after = back === undefined ? [] : groupsOf(back);
  const groups = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
  return [0, 2, 4, 6].map((at) => (groups[at] ?? 0) * 0x10000 + (groups[at + 1] ?? 0));
}

function groupsOf(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const word = ipv4Word(group);
    return [word >>> 16, word & 0xffff];
  });
}
