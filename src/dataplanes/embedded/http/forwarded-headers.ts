import type { TrustedFront } from "../options.ts";
import type { HeaderFields } from "./header-fields.ts";
import type { RoutedRequest } from "./routed-request.ts";

const vouching: ReadonlySet<string> = new Set([
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-real-ip",
]);

/**
 * Tells the backend who asked and how. Without trusted proxies in front, whatever the client says about this is replaced; with them, their
 * words stay and the peer's address is appended. A connector on this machine speaks for the visitor, and for nobody else.
 */
export function addForwardedHeaders(
  headers: HeaderFields,
  request: RoutedRequest,
  trustedHops: TrustedFront,
): void {
  const { connection } = request.exchange;
  const { visitor } = request;
  if (visitor !== undefined) {
    headers.removeAll((name) => vouching.has(name));
    headers.set("x-forwarded-for", visitor.address);
    headers.set("x-forwarded-proto", visitor.scheme);
    headers.set("x-forwarded-host", request.authority);
    headers.set("x-forwarded-port", visitor.scheme === "http" ? "80" : "443");
    headers.set("x-request-id", request.requestId);
    return;
  }
  const trusted = typeof trustedHops === "number" && trustedHops > 0;
  const before = trusted ? headers.get("x-forwarded-for") : undefined;
  if (!trusted) headers.removeAll((name) => vouching.has(name));
  headers.set(
    "x-forwarded-for",
    before === undefined ? connection.client : `${before}, ${connection.client}`,
  );
  const setUnlessTrusted = (name: string, value: string): void => {
    if (!trusted || !headers.has(name)) headers.set(name, value);
  };
  setUnlessTrusted("x-forwarded-proto", connection.secure ? "https" : "http");
  setUnlessTrusted("x-forwarded-host", request.authority);
  setUnlessTrusted("x-forwarded-port", String(connection.port.port));
  headers.set("x-request-id", request.requestId);
}
