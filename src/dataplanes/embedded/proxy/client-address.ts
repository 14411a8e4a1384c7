/**
 * Who has asked, as far as those in front of the gateway are believed (src/plan/client-address.ts).
 * The first address to look at is that of the connection: the TCP peer, or the client that the
 * PROXY protocol names. X-Forwarded-For is read from its end, so that what a client has written
 * itself is never reached: every entry counts only if the one behind it is a proxy's.
 */

import { isIP } from "node:net";
import type { ForwardedForTrust } from "../../../plan/client-address.ts";
import { AddressList } from "../guards/address-list.ts";
import { addressWords, ipv4Text } from "../guards/ip-address.ts";
import type { TrustedFront } from "../limits/options.ts";
import type { Exchange } from "../message/exchange.ts";

export interface RequestClient {
  readonly address: string;
  /** The connection is that of a trusted proxy: its X-Forwarded-* stay. */
  readonly behindProxy: boolean;
  /** As a connector on this machine says it; undefined when there is none. */
  readonly scheme?: "http" | "https";
}

export function clientOf({ connection, headers }: Exchange, trustedHops: TrustedFront): RequestClient {
  const peer = connection.client;
  const { clientAddress } = connection.port;
  if (clientAddress === undefined && typeof trustedHops !== "number") {
    const address = isLoopback(peer) ? headers.get(trustedHops.clientHeader) : undefined;
    if (address === undefined || isIP(address) === 0) return { address: peer, behindProxy: false };
    const scheme = headers.get("x-forwarded-proto") === "http" ? "http" : "https";
    return { address, behindProxy: false, scheme };
  }
  const hops = typeof trustedHops === "number" ? trustedHops : 0;
  const isProxy = proxyTest(clientAddress === undefined ? { hops } : clientAddress.forwardedFor);
  if (isProxy === undefined || !isProxy(peer, 0)) return { address: peer, behindProxy: false };
  return { address: search(peer, headers.get("x-forwarded-for"), isProxy), behindProxy: true };
}

/** `index`: how many addresses are nearer to this gateway. */
type ProxyTest = (address: string, index: number) => boolean;

/** Undefined: nobody is a proxy. */
function proxyTest(trust: ForwardedForTrust | undefined): ProxyTest | undefined {
  if (trust === undefined) return undefined;
  if ("hops" in trust) return trust.hops > 0 ? (_address, index) => index < trust.hops : undefined;
  const list = listOf(trust.networks);
  return (text) => {
    const address = addressWords(text);
    return address !== undefined && list?.includes(address) === true;
  };
}

/** From the peer outwards, up to the first that is no proxy or the last that is an address. */
function search(peer: string, forwardedFor: string | undefined, isProxy: ProxyTest): string {
  if (forwardedFor === undefined) return peer;
  let client = peer;
  let end = forwardedFor.length;
  for (let index = 0; end >= 0 && isProxy(client, index); index++) {
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(",", end - 1);
    const entry = plainAddress(forwardedFor.slice(comma + 1, end).trim());
    if (entry === undefined) return client;
    client = entry;
    end = comma;
  }
  return client;
}

/** Undefined for what is no address; IPv4 addresses in their own form. */
function plainAddress(text: string): string | undefined {
  const address = text.includes("%") ? undefined : addressWords(text);
  const [word] = address ?? [];
  return address?.length === 1 && word !== undefined ? ipv4Text(word) : address && text;
}

/** Items of the plan are immutable; a list of which one range is none trusts nobody. */
const lists: WeakMap<readonly string[], { readonly list: AddressList | undefined }> = new WeakMap();

function listOf(networks: readonly string[]): AddressList | undefined {
  let known = lists.get(networks);
  if (known === undefined) {
    known = { list: AddressList.of(networks) };
    lists.set(networks, known);
  }
  return known.list;
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
