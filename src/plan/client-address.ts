/**
 * How a port finds the address of a client that is behind proxies. Without it the client is the TCP
 * peer, and what it says of itself is removed.
 */
export interface ClientAddressPlan {
  /**
   * A header of the PROXY protocol, version 1 or 2, at the beginning of a connection. `required`: a
   * connection without one is closed. `optional`: it is served, and the peer is the client.
   */
  readonly proxyProtocol?: "required" | "optional";
  /** Absent: X-Forwarded-For of clients is removed. */
  readonly forwardedFor?: ForwardedForTrust;
}

/**
 * - `hops`: so many proxies stand in front, counted from this one outwards. The client is the entry
 *   of X-Forwarded-For that the outermost of them has written.
 * - `networks`: from this one outwards, addresses within these ranges are proxies. The first other
 *   address is the client. The peer itself is the first address to look at.
 *
 * Where the list ends, or has an entry that is no address, the search ends at the last address
 * before that.
 */
export type ForwardedForTrust = { readonly hops: number } | { readonly networks: readonly string[] };
