/**
 * A digest of a set of plan items: the exclusive or of the digests of all items. It does not depend
 * on their order, and an update costs only the items that changed. Two sides with the same digest
 * have the same items. It need not resist forged collisions: a pod that wants to lie can send any
 * digest.
 */
const BYTES = 16;

export class PlanDigest {
  readonly #bits: Buffer = Buffer.alloc(BYTES);

  /** Adds an item that is not in the set, or removes one that is; `digest` is the item's own. */
  toggle(digest: string): void {
    const bits = Buffer.from(digest, "base64url");
    for (let at = 0; at < BYTES; at++) this.#bits[at] = (this.#bits[at] ?? 0) ^ (bits[at] ?? 0);
  }

  /** The empty string for the empty set. */
  get text(): string {
    return this.#bits.every((byte) => byte === 0) ? "" : this.#bits.toString("base64url");
  }
}
