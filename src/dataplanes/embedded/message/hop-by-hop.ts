import { hopByHopFields } from "../../hop-by-hop-fields.ts";
import type { HeaderFields } from "./header-fields.ts";

/**
 * Fields that belong to one connection and never pass a proxy (RFC 9110, 7.6.1), and those that
 * `Connection` names. A caller puts back `TE: trailers`, which gRPC needs, where the next hop is
 * HTTP/2, and `Trailer` where trailers can follow.
 */
export const hopByHop: ReadonlySet<string> = new Set(hopByHopFields);

/**
 * Naming one of these in `Connection` does not take them away: they are never fields of one
 * connection.
 */
const endToEnd: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "content-type",
  "authorization",
  "cookie",
  "forwarded",
  "x-real-ip",
  "x-request-id",
]);

export function removeHopByHop(headers: HeaderFields): void {
  const named = headers.get("connection");
  headers.removeAll(isHopByHop);
  removeNamed(headers, named);
}

/** What `Connection` names belongs to the connection as well. */
export function removeNamed(headers: HeaderFields, connection: string | undefined): void {
  if (connection === undefined || /^(?:keep-alive|close)$/i.test(connection)) return;
  const listed = new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
  headers.removeAll((name) => listed.has(name) && !isProtected(name));
}

/** Whether a `TE` field says that trailers are welcome. */
export function wantsTrailers(te: string | undefined): boolean {
  return te !== undefined && /(?:^|,)\s*trailers\s*(?:,|;|$)/i.test(te);
}

function isHopByHop(name: string): boolean {
  return hopByHop.has(name);
}

function isProtected(name: string): boolean {
  return endToEnd.has(name) || name.startsWith("x-forwarded-");
}
