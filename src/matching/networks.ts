/**
 * Addresses and networks, for guards by address. An IPv6 address that stands for an IPv4 address
 * (::ffff:192.0.2.1) is compared as that IPv4 address (AddressCheck).
 */
import type { AddressCheck } from "../plan/guard.ts";

export interface Address {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

export interface Network {
  readonly address: Address;
  readonly length: number;
}

/** Undefined when the text is no address; a zone (`fe80::1%eth0`) is none. */
export function parseAddress(text: string): Address | undefined {
  const four = ipv4(text);
  if (four !== undefined) return { bits: 32, value: four };
  const six = ipv6(text);
  if (six === undefined) return undefined;
  return six >> 32n === MAPPED ? { bits: 32, value: six & 0xffff_ffffn } : { bits: 128, value: six };
}

/** `192.0.2.0/24`, or an address alone; undefined when the text is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [before = "", length, ...more] = text.split("/");
  const address = parseAddress(before);
  if (address === undefined || more.length > 0) return undefined;
  if (length === undefined) return { address, length: address.bits };
  return /^\d{1,3}$/.test(length) && Number(length) <= address.bits
    ? { address, length: Number(length) }
    : undefined;
}

export function isWithin({ bits, value }: Address, { address, length }: Network): boolean {
  if (bits !== address.bits) return false;
  const rest = BigInt(bits - length);
  return value >> rest === address.value >> rest;
}

/** Whether two networks have an address in common: then one lies within the other. */
export function networksOverlap(a: Network, b: Network): boolean {
  return a.length >= b.length ? isWithin(a.address, b) : isWithin(b.address, a);
}

/** Whether a client of this address is let in: `deny` comes before `allow`. */
export function admits({ allow, deny = [] }: AddressCheck, address: Address): boolean {
  const isIn = (text: string): boolean => {
    const network = parseNetwork(text);
    return network !== undefined && isWithin(address, network);
  };
  return !deny.some(isIn) && (allow === undefined || allow.some(isIn));
}

const MAPPED = 0xffffn;
const OCTET = /^(0|[1-9]\d{0,2})$/;

function ipv4(text: string): bigint | undefined {
  const octets = text.split(".");
  if (octets.length !== 4 || !octets.every((each) => OCTET.test(each) && Number(each) < 256))
    return undefined;
  return octets.reduce((value, octet) => value * 256n + BigInt(octet), 0n);
}

function ipv6(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map(groupsOf);
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined;
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...head, ...Array.from({ length: missing }, () => 0n), ...(tail ?? [])];
  return groups.reduce((value, group) => value * 65_536n + group, 0n);
}

/** One side of `::`; the last group may be an IPv4 address. */
function groupsOf(text: string): readonly bigint[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: bigint[] = [];
  for (const [place, part] of parts.entries()) {
    const four = place === parts.length - 1 ? ipv4(part) : undefined;
    if (four !== undefined) groups.push(four >> 16n, four & 0xffffn);
    else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(BigInt(`0x${part}`));
    else return undefined;
  }
  return groups;
}
