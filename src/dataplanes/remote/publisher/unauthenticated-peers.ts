/**
 * Peers that have not shown who they are yet: few at once, few from one address, and not for long.
 */

export interface StrangerLimits {
  /** Bytes of the line in which a peer says who it is. */
  readonly helloBytes: number;
  /** Time for all that comes before a pod is admitted: handshake, hello, review of the token. */
  readonly helloMs: number;
  /**
   * For so long after it was refused a peer still counts, so that knocking again and again does not
   * pay.
   */
  readonly restMs: number;
  readonly atOnce: number;
  readonly perAddress: number;
}

export const STRANGER_LIMITS: StrangerLimits = {
  helloBytes: 8 * 1024,
  helloMs: 10_000,
  restMs: 1_000,
  atOnce: 256,
  perAddress: 16,
};

export class Strangers {
  readonly #limits: StrangerLimits;
  readonly #byAddress: Map<string, number> = new Map();
  #all = 0;

  constructor(limits: StrangerLimits) {
    this.#limits = limits;
  }

  /**
   * Undefined where there are too many already; otherwise what to call, once or more, when the peer
   * is no stranger any more or gone.
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
