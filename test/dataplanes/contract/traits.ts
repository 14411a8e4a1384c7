import { test } from "vitest";

/** Where data planes may differ; what a trait promises is tested of those that have it. */
export interface Traits {
  /** It reads HTTP itself, so its strictness is this project's own, and its limits can be set. */
  readonly ownHttp: boolean;
  /**
   * It closes connections on which nothing happens as soon as what they were opened for has gone.
   */
  readonly endsIdle: boolean;
  /** A client that ends its side of an upgraded HTTP/2 stream is seen to do so by the backend. */
  readonly endsUpgrades: boolean;
  /**
   * It passes on every interim answer, not only the first, and answers `Expect: 100-continue`
   * itself.
   */
  readonly allInterim: boolean;
  /**
   * A header of the PROXY protocol with the command PROXY and no address family is that of the
   * peer, and not an error.
   */
  readonly servesUnspecified: boolean;
  /** The code with which a backend resets a stream reaches the client, where it may. */
  readonly resetCodes: boolean;
}

export const allTraits: Traits = {
  ownHttp: true,
  endsIdle: true,
  endsUpgrades: true,
  allInterim: true,
  servesUnspecified: true,
  resetCodes: true,
};

/** `test`, for data planes that it is about. */
export function onlyIf(trait: boolean): (name: string, run: () => Promise<void>) => void {
  return trait ? (name, run) => test(name, run) : () => {};
}
