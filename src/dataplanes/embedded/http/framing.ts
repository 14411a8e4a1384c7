/**
 * The strict reading of an HTTP/1 message head: whatever two parsers could frame or address differently is refused (RFC 9112 3.2, 6.1, 6.3).
 *
 * node:http's own parser, which is never lenient here, has already refused: Content-Length beside Transfer-Encoding, several or malformed
 * Content-Lengths, codings that do not end in chunked, folded lines, bare CR or LF, spaces before colons, bad chunk sizes, control characters.
 * It tolerates, and this refuses: codings other than exactly `chunked`, Transfer-Encoding before HTTP/1.1, versions before 1.0,
 * several Hosts, no Host at all, Hosts that are not hosts.
 * It also tolerates a blank line before a request, two spaces in the request line and chunk extensions; none of them survives, because every
 * message is written anew for the backend.
 */

import type { IncomingMessage } from "node:http";
import type { HeaderFields } from "./header-fields.ts";
import { isAuthority } from "./request-target.ts";

export interface Framing {
  readonly invalid: string | undefined;
  readonly authority: string | undefined;
  readonly hasBody: boolean;
}

export function checkFraming(request: IncomingMessage, headers: HeaderFields): Framing {
  const coding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  const host = headers.get("host");
  const hasBody = coding !== undefined || (length !== undefined && length !== "0");
  let invalid: string | undefined;
  if (request.httpVersionMajor !== 1 || request.httpVersionMinor > 1)
    invalid = "this HTTP version is not served";
  else if (coding !== undefined && request.httpVersionMinor === 0)
    invalid = "HTTP/1.0 has no Transfer-Encoding";
  else if (coding !== undefined && coding.toLowerCase() !== "chunked")
    invalid = "only the chunked coding is served";
  else if (coding !== undefined && length !== undefined) invalid = "Content-Length beside Transfer-Encoding";
  else if (length !== undefined && !/^\d{1,15}$/.test(length)) invalid = "Content-Length is not a number";
  else if (host === undefined) invalid = "there is no Host";
  else if (!isAuthority(host)) invalid = "Host is not one host";
  return { invalid, authority: invalid === undefined ? host : undefined, hasBody };
}
