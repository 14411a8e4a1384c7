// Which LoadBalancer addresses each Service gets. Rules:
// 1. An address belongs to one Service. Who has it keeps it for as long as it asks for it (or asks
//    for nothing).
// 2. A Service that asks for addresses gets those that are usable and free; the others are refused,
//    with a reason. None usable: it stays pending. It never gets an address it did not ask for.
// 3. A Service that asks for none gets one of the dynamic range. The search goes on behind the last
//    one given, so an address just freed is the last to come back, and a late packet of its former
//    owner meets nobody.
// 4. Older Services are served first.

export interface Claim {
  /** namespace/name */
  readonly key: string;
  readonly created: string;
  readonly requested: readonly string[];
  readonly held: readonly string[];
}

interface Refusal {
  readonly address: string;
  readonly reason: string;
}

export interface Grant {
  readonly addresses: readonly string[];
  readonly refused: readonly Refusal[];
}

export interface Ranges {
  readonly dynamic: string;
  readonly onRequest: string;
}

export interface Assignment {
  readonly grants: ReadonlyMap<string, Grant>;
  /** Pass it on to the next call. */
  readonly cursor: number;
}

export function assign(claims: readonly Claim[], ranges: Ranges, cursor: number): Assignment {
  const dynamic = parseRange(ranges.dynamic);
  const onRequest = parseRange(ranges.onRequest);
  const usable = (address: string): boolean => contains(dynamic, address) || contains(onRequest, address);
  const ordered = [...claims].sort((a, b) => compare(a.created, b.created) || compare(a.key, b.key));

  const owner = new Map<string, string>();
  const take = (address: string, key: string): boolean => {
    if (owner.has(address)) {
      return owner.get(address) === key;
    }
    owner.set(address, key);
    return true;
  };
  const kept = new Map(ordered.map((claim) => [claim.key, keep(claim, usable, take)]));

  let next = cursor;
  const grants = new Map<string, Grant>();
  for (const claim of ordered) {
    if (claim.requested.length > 0) {
      grants.set(claim.key, grantRequested(claim, usable, take));
      continue;
    }
    const current = kept.get(claim.key) ?? [];
    if (current.length > 0) {
      grants.set(claim.key, { addresses: current, refused: [] });
      continue;
    }
    const found = findFree(dynamic, next, (address) => take(address, claim.key));
    next = found?.cursor ?? next;
    grants.set(claim.key, { addresses: found === undefined ? [] : [found.address], refused: [] });
  }
  return { grants, cursor: next };
}

type Taking = (address: string, key: string) => boolean;

function keep(claim: Claim, usable: (address: string) => boolean, take: Taking): readonly string[] {
  const wanted = claim.held.filter(
    (address) => claim.requested.length === 0 || claim.requested.includes(address),
  );
  return [...new Set(wanted)].filter((address) => usable(address) && take(address, claim.key));
}

function grantRequested(claim: Claim, usable: (address: string) => boolean, take: Taking): Grant {
  const addresses: string[] = [];
  const refused: Refusal[] = [];
  for (const address of new Set(claim.requested)) {
    if (!usable(address)) {
      refused.push({ address, reason: "not in a range of this load balancer" });
    } else if (take(address, claim.key)) {
      addresses.push(address);
    } else {
      refused.push({ address, reason: "in use by another Service" });
    }
  }
  return { addresses, refused };
}

interface Range {
  readonly first: number;
  readonly size: number;
}

function findFree(
  range: Range,
  cursor: number,
  take: (address: string) => boolean,
): { readonly address: string; readonly cursor: number } | undefined {
  // The first and the last address of a network belong to no host.
  const hosts = range.size - 2;
  for (let step = 0; step < hosts; step += 1) {
    const index = (cursor + step) % hosts;
    const address = formatAddress(range.first + 1 + index);
    if (take(address)) {
      return { address, cursor: (index + 1) % hosts };
    }
  }
  return undefined;
}

function parseRange(text: string): Range {
  const [address = "", bits = ""] = text.split("/");
  const first = parseAddress(address);
  const size = 2 ** (32 - Number(bits));
  if (first === undefined || !Number.isInteger(size) || first % size !== 0) {
    throw new Error(`not a range of addresses: ${text}`);
  }
  return { first, size };
}

function contains(range: Range, address: string): boolean {
  const number = parseAddress(address);
  return number !== undefined && number > range.first && number < range.first + range.size - 1;
}

function parseAddress(text: string): number | undefined {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    return undefined;
  }
  const parts = text.split(".").map(Number);
  return parts.every((part) => part <= 255) ? parts.reduce((sum, part) => sum * 256 + part, 0) : undefined;
}

function formatAddress(number: number): string {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
