/**
 * What somebody holds of a plan, in a few characters, whatever the order in which it came: the
 * exclusive or of the digests of all items. A change of it costs what has changed. It tells whether
 * two hold the same; it does not have to withstand anybody who wants two plans to look alike, since
 * a pod could simply lie.
 */
const BYTES = 16;

export class PlanDigest {
  readonly #bits: Buffer = Buffer.alloc(BYTES);

  /**
   * An item that was not held is held, or one that was is held no more; given by its own digest.
   */
  toggle(digest: string): void {
    const bits = Buffer.from(digest, "base64url");
    for (let at = 0; at < BYTES; at++) this.#bits[at] = (this.#bits[at] ?? 0) ^ (bits[at] ?? 0);
  }

  /** Empty of nothing. */
  get text(): string {
    return this.#bits.every((byte) => byte === 0) ? "" : this.#bits.toString("base64url");
  }
}
