/**
 * Addresses that must not be backends, because a pod that connects to them reaches itself, or its
 * node with the metadata service (CVE-2021-25740). The API server rejects most of them in
 * EndpointSlices. It accepts 0.0.0.0/8 except its first address, multicast beyond the link,
 * broadcast, and IPv4 addresses inside IPv4-compatible, NAT64 and 6to4 addresses (seen with
 * Kubernetes 1.36).
 */

export type SpecialAddress = "unspecified" | "loopback" | "link-local" | "multicast";

/** What is special about a valid IPv4 or IPv6 address; undefined: nothing. */
export function specialAddress(address: string): SpecialAddress | undefined {
  if (!address.includes(":")) return specialIpv4(address.split(".").map(Number));
  const groups = groupsOf(address);
  const embedded = embeddedIpv4(groups);
  const special = embedded === undefined ? undefined : specialIpv4(embedded);
  if (special !== undefined) return special;
  const [first = 0] = groups;
  if (groups.every((group) => group === 0)) return "unspecified";
  if (groups.slice(0, 7).every((group) => group === 0) && groups[7] === 1) return "loopback";
  if ((first & 0xffc0) === 0xfe80) return "link-local";
  return (first & 0xff00) === 0xff00 ? "multicast" : undefined;
}

function specialIpv4([first = 0, second = 0, third = 0, fourth = 0]: readonly number[]):
  | SpecialAddress
  | undefined {
  if (first === 0) return "unspecified";
  if (first === 127) return "loopback";
  if (first === 169 && second === 254) return "link-local";
  if (first >= 224 && first < 240) return "multicast";
  // Broadcast reaches this machine, too.
  return [first, second, third, fourth].every((byte) => byte === 255) ? "multicast" : undefined;
}

/**
 * IPv4-mapped (::ffff:0:0/96), IPv4-compatible (::/96), NAT64 (64:ff9b::/96, RFC 6052) and 6to4
 * (2002::/16).
 */
function embeddedIpv4(groups: readonly number[]): readonly number[] | undefined {
  const [first = 0, second = 0, third = 0, , , sixth = 0, seventh = 0, eighth = 0] = groups;
  if (first === 0x2002) return bytesOf(second, third);
  const zeros = (from: number, to: number): boolean => groups.slice(from, to).every((group) => group === 0);
  const mapped = zeros(0, 5) && sixth === 0xffff;
  const translated = first === 0x64 && second === 0xff9b && zeros(2, 6);
  // ::1 and :: are no addresses of IPv4.
  const compatible = zeros(0, 6) && seventh !== 0;
  return mapped || translated || compatible ? bytesOf(seventh, eighth) : undefined;
}

function bytesOf(high: number, low: number): readonly number[] {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff];
}

/** Eight numbers. */
function groupsOf(address: string): readonly number[] {
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const front = readGroups(head);
  if (tail === undefined) return front;
  const back = readGroups(tail);
  return [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back];
}

function readGroups(text: string): readonly number[] {
  if (text === "") return [];
  return text.split(":").flatMap((part) => {
    if (!part.includes(".")) return [Number.parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split(".").map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

/**
 * One text for all ways to write an address; an IPv4 address that is mapped into IPv6 is that
 * address.
 */
export function canonicalAddress(address: string): string {
  if (!address.includes(":")) return address;
  const groups = groupsOf(address);
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (mapped) return bytesOf(groups[6] ?? 0, groups[7] ?? 0).join(".");
  return groups.map((group) => group.toString(16)).join(":");
}

/** Why a data plane in a pod is sent to no such endpoint, as the end of a sentence. */
export function refusedInCluster(address: string): string | undefined {
  const special = specialAddress(address);
  return special === undefined
    ? undefined
    : `is ${special === "unspecified" ? "an" : "a"} ${special} address, which means the data plane's own pod or its node`;
}
