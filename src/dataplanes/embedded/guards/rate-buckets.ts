/**
 * Token buckets that all threads of the data plane share, in one block of memory that never grows.
 *
 * - A bucket is one number, the theoretical arrival time of GCRA (ITU-T I.371): the time at which
 *   it is full again. A request adds the time that one token takes to come; it is refused if the
 *   bucket would then need longer than all of its tokens take.
 * - The memory is sets of a few slots. A slot is a fingerprint of the bucket's name, the number,
 *   and the tenant whose limit it is. The hash has a secret, so nobody can choose names that meet
 *   in one slot or one set.
 * - Taking a token is a compare-and-swap of the number. Only a bucket without a slot takes the lock
 *   of its set, so that two threads never give it two. It replaces a bucket that is full again,
 *   which nobody can tell from a new one.
 * - In a set without such a bucket, it replaces one of the tenant that would have most slots there:
 *   who has more keys than there is room displaces its own buckets, however long they live. Of that
 *   tenant's buckets the one that is full soonest goes.
 * - Whoever replaces a slot first swaps its number for BUSY, then writes the fingerprint and the
 *   tenant, then the number. So a swap for the previous bucket cannot succeed in between. The
 *   tenant is read only under the lock.
 * - A thread that ends while it has a lock loses it after LOCK_NS.
 */

import { hash, randomBytes } from "node:crypto";

const SLOTS_PER_SET = 8;
/** Fingerprint, number, tenant. */
const WORDS_PER_SLOT = 3;
const WORDS_PER_SET = SLOTS_PER_SET * WORDS_PER_SLOT;
const DEFAULT_SLOTS = 65_536;
const BUSY = -1n;
const LOCK_NS = 250_000_000n;
const LOCK_POLL_MS = 1;
/**
 * Of an empty bucket until it is full: 73 years, far from the end of 64 bits when added up. A
 * bucket that would take longer has all of its tokens, and they come sooner.
 */
const LONGEST_NS = 2n ** 61n;
const NS_PER_MS = 1_000_000n;

export interface BucketMemory {
  readonly words: SharedArrayBuffer;
  readonly secret: string;
}

export function createBucketMemory(slots: number = DEFAULT_SLOTS): BucketMemory {
  const sets = Math.max(1, Math.ceil(slots / SLOTS_PER_SET));
  return {
    words: new SharedArrayBuffer(sets * (1 + WORDS_PER_SET) * BigInt64Array.BYTES_PER_ELEMENT),
    secret: randomBytes(32).toString("hex"),
  };
}

export interface Bucket {
  /** Who has written the limit: the namespace of its policy. */
  readonly tenant: string;
  /** Of one bucket alone, whoever the tenant is. */
  readonly name: string;
}

/** Nanoseconds. */
export interface Refill {
  /** Until one token comes. */
  readonly token: bigint;
  /** Until an empty bucket is full. */
  readonly bucket: bigint;
}

/** `never`: not even the first request finds a token. Undefined: this is no limit. */
export function refillOf(limit: {
  readonly requests: number;
  readonly periodMs: number;
  readonly burst: number;
}): Refill | "never" | undefined {
  const { requests, periodMs, burst } = limit;
  if (!(isCount(requests) && isCount(periodMs) && isCount(burst)) || periodMs < 1) return undefined;
  if (requests < 1 || burst < 1) return "never";
  const period = BigInt(Math.floor(periodMs)) * NS_PER_MS;
  const count = BigInt(Math.floor(requests));
  const tokens = BigInt(Math.floor(burst));
  const token = shorter((period + count - 1n) / count, LONGEST_NS / tokens);
  return { token, bucket: token * tokens };
}

/** A slot whose bucket is not full, and whose it is. */
interface Taken {
  readonly slot: number;
  readonly full: bigint;
  readonly of: bigint;
}

export class RateBuckets {
  readonly #words: BigInt64Array;
  readonly #sets: number;
  readonly #secret: string;
  readonly #now: () => bigint;

  /** The clock must be the same in all threads, as that of `process.hrtime` is. */
  constructor({ words, secret }: BucketMemory, now: () => bigint = process.hrtime.bigint) {
    this.#words = new BigInt64Array(words);
    this.#sets = this.#words.length / (1 + WORDS_PER_SET);
    this.#secret = secret;
    this.#now = now;
  }

  /** 0 when a token was taken, else the nanoseconds until there is one. */
  take({ tenant, name }: Bucket, refill: Refill): bigint {
    const digest = this.#digest(name);
    const fingerprint = digest.readBigInt64LE(0) || 1n;
    const set = digest.readUInt32LE(8) % this.#sets;
    for (;;) {
      const slot = this.#find(set, fingerprint);
      const waitNs =
        (slot === undefined ? undefined : this.#takeFrom(slot, fingerprint, refill)) ??
        this.#enter(set, fingerprint, tenant, refill);
      if (waitNs !== undefined) return waitNs;
    }
  }

  /** Undefined when the slot is another bucket's, or is about to be. */
  #takeFrom(slot: number, fingerprint: bigint, { token, bucket }: Refill): bigint | undefined {
    for (;;) {
      // The number first: if the slot is replaced after this, the swap fails.
      const full = Atomics.load(this.#words, slot + 1);
      if (full === BUSY || Atomics.load(this.#words, slot) !== fingerprint) return undefined;
      const now = this.#now();
      const missing = (full > now ? full - now : 0n) + token;
      if (missing > bucket) return missing - bucket;
      if (Atomics.compareExchange(this.#words, slot + 1, full, now + missing) === full) return 0n;
    }
  }

  /** Gives the bucket a slot; undefined when it has one by now. */
  #enter(set: number, fingerprint: bigint, tenant: string, refill: Refill): bigint | undefined {
    const owner = this.#digest(tenant).readBigInt64LE(0);
    const stamp = this.#lock(set);
    try {
      for (;;) {
        const own = this.#find(set, fingerprint);
        const slot = own ?? this.#replaceable(set, owner, fingerprint);
        const full = Atomics.load(this.#words, slot + 1);
        // Who holds the lock and finds its own slot BUSY finds what a thread has left behind.
        if (own !== undefined && full !== BUSY) return undefined;
        if (Atomics.compareExchange(this.#words, slot + 1, full, BUSY) !== full) continue;
        Atomics.store(this.#words, slot, fingerprint);
        Atomics.store(this.#words, slot + 2, owner);
        Atomics.store(this.#words, slot + 1, this.#now() + refill.token);
        return 0n;
      }
    } finally {
      Atomics.compareExchange(this.#words, set, stamp, 0n);
      Atomics.notify(this.#words, set);
    }
  }

  #find(set: number, fingerprint: bigint): number | undefined {
    const first = this.#firstOf(set);
    for (let slot = first; slot < first + WORDS_PER_SET; slot += WORDS_PER_SLOT) {
      if (Atomics.load(this.#words, slot) === fingerprint) return slot;
    }
    return undefined;
  }

  #replaceable(set: number, owner: bigint, fingerprint: bigint): number {
    const now = this.#now();
    const first = this.#firstOf(set);
    const taken: Taken[] = [];
    const weights = new Map<bigint, number>();
    for (let slot = first; slot < first + WORDS_PER_SET; slot += WORDS_PER_SLOT) {
      const full = Atomics.load(this.#words, slot + 1);
      if (full <= now) return slot;
      const of = Atomics.load(this.#words, slot + 2);
      // The slot that is asked for counts as well.
      weights.set(of, (weights.get(of) ?? (of === owner ? 1 : 0)) + 1);
      taken.push({ slot, full, of });
    }
    const before = (a: Taken, b: Taken): boolean => {
      if (a.of === b.of) return a.full < b.full;
      const difference = (weights.get(a.of) ?? 0) - (weights.get(b.of) ?? 0);
      if (difference !== 0) return difference > 0;
      if (a.of === owner || b.of === owner) return a.of === owner;
      // Between others not the time decides, which a tenant can choose, but as good as chance.
      return (a.of ^ fingerprint) < (b.of ^ fingerprint);
    };
    return taken.reduce((found, each) => (before(each, found) ? each : found)).slot;
  }

  /** Behind the locks of all sets. */
  #firstOf(set: number): number {
    return this.#sets + set * WORDS_PER_SET;
  }

  #digest(text: string): Buffer {
    return hash("sha256", this.#secret + text, "buffer");
  }

  #lock(set: number): bigint {
    for (;;) {
      const stamp = this.#now();
      const held = Atomics.compareExchange(this.#words, set, 0n, stamp);
      if (held === 0n) return stamp;
      if (stamp - held < LOCK_NS) Atomics.wait(this.#words, set, held, LOCK_POLL_MS);
      else if (Atomics.compareExchange(this.#words, set, held, stamp) === held) return stamp;
    }
  }
}

function isCount(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}

function shorter(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
