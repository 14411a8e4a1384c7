/**
 * Rendezvous hashing (highest random weight): every endpoint has a score for a key, and the
 * highest one wins. A key moves only if its endpoint goes, or a new one beats it. There is no
 * table to build when endpoints change, and threads and pods agree without talking to each other.
 * The price is one multiplication or three for each endpoint and request.
 */
import type { Endpoint } from "../../../plan/backend.ts";

/** Enough for the tries of a request. */
const MOST = 3;

const known: WeakMap<readonly Endpoint[], Uint32Array> = new WeakMap();

/** The endpoints of the highest scores, the best one first. */
export function byKey(endpoints: readonly Endpoint[], key: string): readonly Endpoint[] {
  const hashes = hashesOf(endpoints);
  const keyHash = hashText(key);
  const best: { readonly score: number; readonly at: number }[] = [];
  for (let at = 0; at < hashes.length; at++) {
    const score = mix((hashes[at] as number) ^ keyHash);
    if (best.length === MOST && score <= (best[MOST - 1]?.score ?? 0)) continue;
    let place = best.length;
    while (place > 0 && (best[place - 1]?.score ?? 0) < score) place--;
    best.splice(place, 0, { score, at });
    if (best.length > MOST) best.pop();
  }
  return best.map(({ at }) => endpoints[at] as Endpoint);
}

function hashesOf(endpoints: readonly Endpoint[]): Uint32Array {
  const present = known.get(endpoints);
  if (present !== undefined) return present;
  const hashes = Uint32Array.from(endpoints, ({ address, port }) => hashText(`${address} ${port}`));
  known.set(endpoints, hashes);
  return hashes;
}

/** FNV-1a over both bytes of each character, then mixed: neighbours must not stay neighbours. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193);
  }
  return mix(hash);
}

/** The finalizer of MurmurHash3: every bit of the input changes every bit of the result. */
function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
