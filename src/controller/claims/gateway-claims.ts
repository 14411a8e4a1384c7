/**
 * The claimed names of one Gateway, spread over objects of bounded size (shards). A name stays in
 * the shard that it was put into, so that a change writes one shard, however many there are.
 *
 * Each shard must be enough by itself: the API server looks at one at a time. So a wildcard brings
 * along which names below it others use (`except`). One below which others use very many names
 * holds nothing but itself: it is shared ground.
 */
import type { ClaimedName } from "../../api/hostname-claims.ts";
import type { UsedHostname } from "../../engine/listeners/claims.ts";
import { nextName } from "./claimed-name.ts";

/** An API server takes objects of about 1.5 MB. */
const SHARD_BYTES = 200_000;
const MOST_SHARDS = 64;
const MOST_EXCEPT = 32;
/** Kept free for it. */
const EXCEPT_BYTES = 4_000;
/** Names that nobody uses or wants any more, kept for their history. */
const MOST_PAST_NAMES = 500;

interface PlacedName {
  readonly shard: number;
  readonly bytes: number;
  readonly name: ClaimedName;
}

export type ShardNames = Readonly<Record<string, ClaimedName>>;

export class GatewayClaims {
  readonly #referenceOf: (hostname: string) => string;
  readonly #names = new Map<string, PlacedName>();
  /** By wildcard: names below it, whether anybody uses the wildcard or not. */
  readonly #below = new Map<string, Set<string>>();
  /** Names of each shard, and their sizes together. */
  readonly #shards: { readonly names: Set<string>; bytes: number }[] = [];
  readonly #dirty = new Set<number>();
  /** Names without users, the oldest first. */
  readonly #past = new Set<string>();
  /** Names for which there is no room: nobody is refused them. */
  readonly #unheld = new Set<string>();

  constructor(referenceOf: (hostname: string) => string) {
    this.#referenceOf = referenceOf;
  }

  /** What another leader has written, shard by shard. */
  load(shards: ReadonlyMap<number, ShardNames>): void {
    for (const [shard, names] of shards) {
      if (shard >= MOST_SHARDS) continue;
      for (const [hostname, { except: _, ...name }] of Object.entries(names))
        if (!this.#names.has(hostname)) this.#put(hostname, name, shard);
    }
    this.#dirty.clear();
  }

  get hostnames(): Iterable<string> {
    return this.#names.keys();
  }

  /** Names that are not held because there is no room for them. */
  get unheld(): number {
    return this.#unheld.size;
  }

  /** Shards that there are, in order; the first one always is. */
  get shards(): number {
    return Math.max(1, this.#shards.findLastIndex(({ names }) => names.size > 0) + 1);
  }

  update(hostname: string, claim: UsedHostname | undefined, now: string): void {
    this.#unheld.delete(hostname);
    const placed = this.#names.get(hostname);
    const reference = this.#referenceOf(hostname);
    const name = nextName(placed?.name, claim, { reference, now });
    if (JSON.stringify(name) === JSON.stringify(placed?.name)) return;
    const isChanged = String(name?.namespaces) !== String(placed?.name.namespaces);
    if (placed !== undefined) this.#remove(hostname, placed);
    if (name !== undefined) this.#put(hostname, name, this.#roomFor(hostname, name, placed?.shard));
    if (isChanged) this.#touchAbove(hostname);
    this.#forgetPast();
  }

  /** Shards that have changed since this was last asked. */
  takeDirty(): readonly number[] {
    const dirty = [...this.#dirty].sort((a, b) => a - b);
    this.#dirty.clear();
    return dirty;
  }

  namesOf(shard: number): ShardNames {
    const names = [...(this.#shards[shard]?.names ?? [])].sort();
    return Object.fromEntries(names.map((hostname) => [hostname, this.#shown(hostname)]));
  }

  #shown(hostname: string): ClaimedName {
    const name = this.#names.get(hostname)?.name ?? { reference: "", namespaces: [] };
    if (!hostname.startsWith("*.") || name.namespaces.length === 0) return name;
    const except = this.#exceptOf(hostname, name.namespaces);
    return except === undefined ? name : { ...name, except };
  }

  /** Undefined: the wildcard holds nothing but itself. */
  #exceptOf(wildcard: string, own: readonly string[]): ClaimedName["except"] {
    const except: Record<string, readonly string[]> = {};
    let count = 0;
    for (const hostname of this.#below.get(wildcard) ?? []) {
      const namespaces = this.#names.get(hostname)?.name.namespaces ?? [];
      if (namespaces.every((namespace) => own.includes(namespace))) continue;
      if (++count > MOST_EXCEPT) return undefined;
      except[hostname] = namespaces;
    }
    return Object.fromEntries(Object.entries(except).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #roomFor(hostname: string, name: ClaimedName, at: number | undefined): number {
    const bytes = sizeOf(hostname, name);
    const hasRoom = (shard: number): boolean => (this.#shards[shard]?.bytes ?? 0) + bytes <= SHARD_BYTES;
    if (at !== undefined && hasRoom(at)) return at;
    for (let shard = 0; shard < MOST_SHARDS; shard++) if (hasRoom(shard)) return shard;
    return MOST_SHARDS;
  }

  #put(hostname: string, name: ClaimedName, shard: number): void {
    if (shard >= MOST_SHARDS) {
      this.#unheld.add(hostname);
      return;
    }
    const bytes = sizeOf(hostname, name);
    this.#names.set(hostname, { shard, bytes, name });
    while (this.#shards.length <= shard) this.#shards.push({ names: new Set(), bytes: 0 });
    const target = this.#shards[shard];
    target?.names.add(hostname);
    if (target !== undefined) target.bytes += bytes;
    this.#dirty.add(shard);
    for (const wildcard of wildcardsAbove(hostname)) {
      const below = this.#below.get(wildcard) ?? new Set();
      this.#below.set(wildcard, below.add(hostname));
    }
    if (name.holders === undefined && name.wanted === undefined && name.namespaces.length === 0)
      this.#past.add(hostname);
  }

  #remove(hostname: string, { shard, bytes }: PlacedName): void {
    this.#names.delete(hostname);
    this.#past.delete(hostname);
    const from = this.#shards[shard];
    from?.names.delete(hostname);
    if (from !== undefined) from.bytes -= bytes;
    this.#dirty.add(shard);
    for (const wildcard of wildcardsAbove(hostname)) {
      const below = this.#below.get(wildcard);
      below?.delete(hostname);
      if (below?.size === 0) this.#below.delete(wildcard);
    }
  }

  /** Wildcards above it tell of it. */
  #touchAbove(hostname: string): void {
    for (const wildcard of wildcardsAbove(hostname)) {
      const placed = this.#names.get(wildcard);
      if (placed !== undefined) this.#dirty.add(placed.shard);
    }
  }

  #forgetPast(): void {
    for (const hostname of this.#past) {
      if (this.#past.size <= MOST_PAST_NAMES) return;
      const placed = this.#names.get(hostname);
      if (placed !== undefined) this.#remove(hostname, placed);
    }
  }
}

/** `*.b.c` and `*.c` for `a.b.c` and for `*.a.b.c`, and so on. */
function wildcardsAbove(hostname: string): readonly string[] {
  const above: string[] = [];
  const start = hostname.startsWith("*.") ? 2 : 0;
  for (let dot = hostname.indexOf(".", start); dot >= 0; dot = hostname.indexOf(".", dot + 1))
    above.push(`*${hostname.slice(dot)}`);
  return above;
}

/** With room for what a wildcard brings along. */
function sizeOf(hostname: string, name: ClaimedName): number {
  return hostname.length + JSON.stringify(name).length + (hostname.startsWith("*.") ? EXCEPT_BYTES : 0);
}
