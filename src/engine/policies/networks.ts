/**
 * Networks in CIDR notation, as policies write them and plans have them: an address alone is a
 * network of that one address. The IPv4-mapped form of IPv6 is refused: clients are compared by
 * their IPv4 address, so that it would never match.
 */
import { isIpv4, isIpv6 } from "../../api/admission/schema/formats.ts";

/** Undefined when the text is no network. */
export function readNetwork(text: string): string | undefined {
  const [address = "", length, ...more] = text.split("/");
  if (more.length > 0) return undefined;
  const longest = isIpv4(address) ? 32 : isIpv6(address) && !isMapped(address) ? 128 : undefined;
  if (longest === undefined) return undefined;
  if (length === undefined) return `${address}/${longest}`;
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > longest) return undefined;
  return `${address}/${length}`;
}

/** Five groups of zeros, then ffff (RFC 4291, 2.5.5.2), in any spelling. */
function isMapped(address: string): boolean {
  const [head = "", tail] = address.split("::");
  const before = groupsOf(head);
  const after = groupsOf(tail ?? "");
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0);
  const groups = [...before, ...zeros, ...after];
  return groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
}

/** A dotted tail stands for two groups; what they are does not matter here. */
function groupsOf(text: string): readonly number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => (group.includes(".") ? [1, 1] : [Number.parseInt(group, 16)]));
}

/** All of them, or the first that is none. */
export function readNetworks(
  texts: readonly string[],
): { readonly networks: readonly string[] } | { readonly problem: string } {
  const networks: string[] = [];
  for (const text of texts) {
    const network = readNetwork(text);
    if (network === undefined) return { problem: `${JSON.stringify(text)} is no network` };
    networks.push(network);
  }
  return { networks };
}
