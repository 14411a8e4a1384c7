import type { TrustedFront } from "../limits/options.ts";
import { areTrusted } from "../message/client-fields.ts";
import type { RoutedRequest } from "./routed-request.ts";

/**
 * Tells who asked and how, to rules and to the backend. Without trusted proxies in front, whatever
 * the client says about this has been taken away and is replaced; with them, their words stay and
 * the peer's address is appended. A connector on this machine speaks for the visitor, and for
 * nobody else.
 */
export function addForwardedHeaders(request: RoutedRequest, trustedHops: TrustedFront): void {
  const { connection } = request.exchange;
  const { visitor, authority, headers } = request;
  const scheme = visitor?.scheme ?? (connection.secure ? "https" : "http");
  if (areTrusted(trustedHops)) {
    const before = headers.get("x-forwarded-for");
    headers.set(
      "x-forwarded-for",
      before === undefined ? connection.client : `${before}, ${connection.client}`,
    );
    if (!headers.has("x-forwarded-proto")) headers.add("x-forwarded-proto", scheme);
    if (!headers.has("x-forwarded-host")) headers.add("x-forwarded-host", authority);
    if (!headers.has("x-forwarded-port")) headers.add("x-forwarded-port", connection.portText);
  } else {
    headers.add("x-forwarded-for", visitor?.address ?? connection.client);
    headers.add("x-forwarded-proto", scheme);
    headers.add("x-forwarded-host", authority);
    headers.add("x-forwarded-port", visitor === undefined ? connection.portText : portOf(visitor.scheme));
  }
  headers.set("x-request-id", request.requestId);
}

function portOf(scheme: "http" | "https"): string {
  return scheme === "http" ? "80" : "443";
}
