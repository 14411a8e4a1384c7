/**
 * Names of resources.
 *
 * A client's SNI is asked for as the name of a secret, whatever it says. A server name has at most
 * 255 bytes (TLS refuses more), so names that only configuration may use are longer than that.
 */

import { isWildcard } from "../../../plan/hostname.ts";
import type { ItemId, PortItem } from "../../../plan/plan.ts";

const LONGEST_SNI = 255;

function unspeakable(name: string): string {
  return `${name} `.padEnd(LONGEST_SNI + 1, "-");
}

export function certificateSecretName(id: ItemId): string {
  return unspeakable(`certificate ${id}`);
}

/** The secret for clients without a server name (SNI). */
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

/**
 * Ids begin with their kind and Gateway. Within a Gateway's Envoy that is the same for all, and
 * Envoy keeps a name for each route twice and for each cluster some twenty times.
 */
function shortened(prefix: string, id: ItemId): string {
  return id.startsWith(prefix) ? id.slice(prefix.length) : `=${id}`;
}

function lengthened(prefix: string, name: string): ItemId {
  return name.startsWith("=") ? name.slice(1) : `${prefix}${name}`;
}

/**
 * A listener as one word: names of routes begin with it, and both the script and the access log
 * read it there.
 */
export function listenerWord(gateway: string, id: ItemId): string {
  return shortened(`listener:${gateway}:`, id).replace(/[\s%]/g, encodeURIComponent);
}

export function listenerOfWord(gateway: string, word: string): ItemId {
  return lengthened(`listener:${gateway}:`, decodeURIComponent(word));
}

/** Of a route whose guards cannot be applied, made from its name: for the access log. */
export function unguardedName(name: string): string {
  return `${name} ${UNGUARDED}`;
}

export const UNGUARDED = "unguarded";

/** Of a route with an answer that somebody has written. */
export function answeredName(name: string): string {
  return `${name} ${ANSWERED}`;
}

export const ANSWERED = "answered";

/** A backend for HTTP/1.1 or TCP, and for HTTP/2 where a gRPC route wants it. */
export type Variant = "plain" | "h2";

export function clusterName(gateway: string, backend: ItemId, variant: Variant): string {
  const name = endpointsName(gateway, backend);
  return variant === "h2" ? `${name}#h2` : name;
}

/** What all clusters of a backend share. */
export function endpointsName(gateway: string, backend: ItemId): string {
  return shortened(`backend:${gateway}:`, backend);
}

export function backendOfCluster(gateway: string, name: string): ItemId {
  return lengthened(`backend:${gateway}:`, name.replace(/#h2$/, ""));
}

/** A listener without a socket, see `sentinelListener`. */
export const SENTINEL_LISTENER = "mergeway.sentinel";
export const NORMAL_FILTER = "mergeway.normal";
export const TENANCY_FILTER = "mergeway.tenancy";
/** Let nothing pass that a guard of the route does not; without guards they do nothing. */
export const ADDRESS_FILTER = "mergeway.addresses";
export const LIMIT_FILTER = "mergeway.limits";
/** Has bodies counted, where a route limits them. */
export const BODY_FILTER = "mergeway.bodies";
/** The cluster of the bootstrap that configuration comes from: the program beside Envoy. */
export const AGENT_CLUSTER = "mergeway";
/** Asks the agent who sends a request; every scope turns it off for routes that do not need it. */
export const AUTHENTICATION_FILTER = "mergeway.authentication";
/** Keeps sessions on their endpoints, where a route has it configured. */
export const SESSION_FILTER = "mergeway.sessions";
/** Has compressors, where a scope or route has them configured. */
export const COMPRESSION_FILTER = "mergeway.compression";
/** Has routes' own mutations besides. */
export const CLEANING_FILTER = "mergeway.cleaning";
export const SCOPE_HEADER = "x-mergeway-scope";
export const SNI_HEADER = "x-mergeway-sni";
/** What the client of a connection has met, set by filter chains with client certificates. */
export const CLIENTS_HEADER = "x-mergeway-clients";
/** The transfer coding of a request, for the filter that refuses it in HTTP/1.0. */
export const CODING_HEADER = "x-mergeway-coding";
/** The router reads it and does not pass it on. */
export const RETRY_ON_HEADER = "x-envoy-retry-on";
