/**
 * Names of resources.
 *
 * A client's SNI is asked for as the name of a secret, whatever it says. A server name has at most 255 bytes (TLS refuses more), so
 * names that only configuration may use are longer than that.
 */

import { isWildcard } from "../../../plan/hostname.ts";
import type { ItemId, PortItem } from "../../../plan/plan.ts";

const LONGEST_SNI = 255;

function unspeakable(name: string): string {
  return `${name} `.padEnd(LONGEST_SNI + 1, "-");
}

export function certificateName(id: ItemId): string {
  return unspeakable(`certificate ${id}`);
}

/** Asked for when a client names no server. */
export const WITHOUT_NAME: string = unspeakable("no server name");

export const SYSTEM_AUTHORITIES: string = unspeakable("system authorities");

export function isSpeakable(name: string): boolean {
  return Buffer.byteLength(name) <= LONGEST_SNI;
}

/** The scope of a hostname pattern at a port; also the key that requests are given. */
export function scopeName(port: PortItem, pattern: string): string {
  return `${port.port}/${pattern === "" ? "*" : pattern}`;
}

export function needsTable(pattern: string): boolean {
  return pattern === "" || isWildcard(pattern);
}

/** A listener's id as one word: names of routes begin with it, and both the script and the access log read it there. */
export function listenerWord(id: ItemId): string {
  return id.replace(/[\s%]/g, encodeURIComponent);
}

export function listenerOfWord(word: string): ItemId {
  return decodeURIComponent(word);
}

/** A backend for HTTP/1.1 or TCP, and for HTTP/2 where a gRPC route wants it. */
export type Variant = "plain" | "h2";

export function clusterName(backend: ItemId, variant: Variant): string {
  return variant === "h2" ? `${backend}#h2` : backend;
}

/** A listener without a socket, see `keeper`. */
export const KEEPER = "mergeway.keeper";
export const NORMAL_FILTER = "mergeway.normal";
export const TENANCY_FILTER = "mergeway.tenancy";
export const SCOPE_HEADER = "x-mergeway-scope";
export const SNI_HEADER = "x-mergeway-sni";
