import type { ItemId } from "./plan.ts";

export interface CertificateItem {
  readonly type: "certificate";
  readonly id: ItemId;
  readonly gateway: string;
  /** PEM, leaf first. */
  readonly chain: string;
  readonly key: PrivateKey;
  /** DNS names of the leaf, lower case. */
  readonly names: readonly string[];
}

/**
 * Key material that cannot leak by accident: printing, logging or serialising it gives a
 * placeholder.
 */
export class PrivateKey {
  readonly #pem: string;

  constructor(pem: string) {
    this.#pem = pem;
  }

  /**
   * The only way to the key, for the one place that hands it to TLS or to an authenticated data
   * plane.
   */
  reveal(): string {
    return this.#pem;
  }

  equals(other: unknown): boolean {
    return other instanceof PrivateKey && other.#pem === this.#pem;
  }

  toString(): string {
    return "[private key]";
  }

  toJSON(): string {
    return "[private key]";
  }
}
