/**
 * Limits of unauthenticated peers: how many at once, how many from one address, and for how long.
 */

export interface UnauthenticatedPeerLimits {
  /** The longest hello message in bytes. */
  readonly helloBytes: number;
  /** Time limit until a pod is admitted: TLS handshake, hello, TokenReview. */
  readonly helloMs: number;
  /**
   * How long a peer still counts after it was refused, so that reconnecting at once does not pay.
   */
  readonly restMs: number;
  readonly atOnce: number;
  readonly perAddress: number;
}

export const UNAUTHENTICATED_PEER_LIMITS: UnauthenticatedPeerLimits = {
  helloBytes: 8 * 1024,
  helloMs: 10_000,
  restMs: 1_000,
  atOnce: 256,
  perAddress: 16,
};

export class UnauthenticatedPeers {
  readonly #limits: UnauthenticatedPeerLimits;
  readonly #byAddress: Map<string, number> = new Map();
  #all = 0;

  constructor(limits: UnauthenticatedPeerLimits) {
    this.#limits = limits;
  }

  /**
   * Undefined if there are too many. Otherwise a function to call when the peer is authenticated or
   * gone; further calls do nothing.
   */
  enter(address: string): (() => void) | undefined {
    const here = this.#byAddress.get(address) ?? 0;
    if (this.#all >= this.#limits.atOnce || here >= this.#limits.perAddress) return undefined;
    this.#all++;
    this.#byAddress.set(address, here + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#all--;
      const rest = (this.#byAddress.get(address) ?? 1) - 1;
      if (rest === 0) this.#byAddress.delete(address);
      else this.#byAddress.set(address, rest);
    };
  }
}
