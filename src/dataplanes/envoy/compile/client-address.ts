/**
 * How a port finds the address of a client (plan/client-address.ts), as connection managers of
 * Envoy. Whoever is not trusted meets a manager that overwrites what clients say of themselves.
 * Where trust depends on the peer, there are two managers, and filter chains by source address
 * decide between them: Envoy's own detection leaves a forged field to the backend. Of hops, the
 * entries of proxies are counted and not read.
 */

import type { PortItem } from "../../../plan/plan.ts";
import { type AddressRange, cidrsOf, readableRanges } from "./address-ranges.ts";

/** Whose word counts for a manager. */
export type Trust =
  | { readonly type: "nobody" }
  | { readonly type: "hops"; readonly hops: number }
  | { readonly type: "networks"; readonly cidrs: ReturnType<typeof cidrsOf> };

export interface TrustedPeers {
  readonly trust: Trust;
  /** Peers that it is for; absent: all that no other has. */
  readonly peers?: readonly AddressRange[];
}

const NOBODY: Trust = { type: "nobody" };
/** As many as a ClientPolicy can have. */
const MOST_HOPS = 32;

/** Of one port; `trustedHops`: what holds for ports that say nothing themselves. */
export function trustOf({ clientAddress }: PortItem, trustedHops: number): readonly TrustedPeers[] {
  if (clientAddress === undefined) return [{ trust: byHops(trustedHops) }];
  const { forwardedFor } = clientAddress;
  if (forwardedFor === undefined) return [{ trust: NOBODY }];
  if ("hops" in forwardedFor) return [{ trust: byHops(forwardedFor.hops) }];
  const peers = readableRanges(forwardedFor.networks);
  if (peers.length === 0) return [{ trust: NOBODY }];
  return [{ trust: NOBODY }, { trust: { type: "networks", cidrs: cidrsOf(peers) }, peers }];
}

function byHops(hops: number): Trust {
  return hops >= 1 ? { type: "hops", hops: Math.min(Math.floor(hops), MOST_HOPS) } : NOBODY;
}
