import type { RoutedRequest } from "./routed-request.ts";

/**
 * Tells who asked and how, to rules and to the backend. Without trusted proxies in front, whatever
 * the client says about this has been taken away and is replaced; with them, their words stay and
 * the peer's address is appended. A connector on this machine speaks for its client, and for nobody
 * else.
 */
export function addForwardedHeaders(request: RoutedRequest): void {
  const { connection } = request.exchange;
  const { client, authority, headers } = request;
  const scheme = client.scheme ?? (connection.secure ? "https" : "http");
  if (client.behindProxy) {
    const before = headers.get("x-forwarded-for");
    headers.set(
      "x-forwarded-for",
      before === undefined ? connection.client : `${before}, ${connection.client}`,
    );
    if (!headers.has("x-forwarded-proto")) headers.add("x-forwarded-proto", scheme);
    if (!headers.has("x-forwarded-host")) headers.add("x-forwarded-host", authority);
    if (!headers.has("x-forwarded-port")) headers.add("x-forwarded-port", connection.portText);
  } else {
    headers.add("x-forwarded-for", client.address);
    headers.add("x-forwarded-proto", scheme);
    headers.add("x-forwarded-host", authority);
    headers.add(
      "x-forwarded-port",
      client.scheme === undefined ? connection.portText : portOf(client.scheme),
    );
  }
  const certificate = connection.handshake?.clientCertificate;
  if (certificate !== undefined) headers.set("x-forwarded-client-cert", certificate);
  headers.set("x-request-id", request.requestId);
}

function portOf(scheme: "http" | "https"): string {
  return scheme === "http" ? "80" : "443";
}
