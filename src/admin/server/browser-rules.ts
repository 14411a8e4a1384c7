/**
 * What browsers may do here. The server has no passwords: whoever reaches it may read. So a web
 * page of somebody else must not reach it through the browser of a person who may.
 *
 * - DNS rebinding needs a name that the attacker controls: the Host must be an address or
 *   localhost.
 * - Pages of other origins are refused by `Origin` and by `Sec-Fetch-Site` (Fetch Metadata). A link
 *   from elsewhere may open the page, but not in a frame.
 * - The page loads nothing from elsewhere and runs no inline script, whatever text it shows.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { type AdminAnswer, problem } from "./endpoint.ts";

const CONTENT_SECURITY_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export const BROWSER_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

export function refusal({ method, headers }: IncomingMessage): AdminAnswer | undefined {
  if (!isLocalName(headers.host ?? "")) {
    return problem(403, "the Host must be an IP address or localhost");
  }
  if (!isOwnOrigin(headers)) return problem(403, "pages of other origins may not ask");
  return method === "GET" || method === "HEAD"
    ? undefined
    : problem(405, "the admin server only reads: use GET");
}

function isLocalName(host: string): boolean {
  const name = host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || isIP(name) !== 0;
}

/** Programs that are no browsers send neither header. */
function isOwnOrigin({ host, origin, ...headers }: IncomingHttpHeaders): boolean {
  if (origin !== undefined && origin !== `http://${host}`) return false;
  const site = headers["sec-fetch-site"] ?? "none";
  if (site === "none" || site === "same-origin") return true;
  return headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}
