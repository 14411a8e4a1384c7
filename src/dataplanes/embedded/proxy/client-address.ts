import { isIP } from "node:net";
import type { TrustedFront } from "../limits/options.ts";
import type { Exchange } from "../message/exchange.ts";

/** The client behind a connector on this machine, in the connector's own words. */
export interface Visitor {
  readonly address: string;
  readonly scheme: "http" | "https";
}

/**
 * Undefined when there is no such connector, or when the peer is not on this machine: then the peer
 * itself is the client.
 */
export function visitorOf({ connection, headers }: Exchange, trusted: TrustedFront): Visitor | undefined {
  if (typeof trusted === "number" || !isLoopback(connection.client)) return undefined;
  const address = headers.get(trusted.clientHeader);
  if (address === undefined || isIP(address) === 0) return undefined;
  return { address, scheme: headers.get("x-forwarded-proto") === "http" ? "http" : "https" };
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
