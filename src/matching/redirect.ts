/**
 * The Location of a redirect (HTTPRequestRedirectFilter):
 *
 * - scheme, hostname and path are the request's own unless the filter says otherwise; the query
 *   always stays;
 * - the port is the filter's; else, if the filter names a scheme, that scheme's well-known port;
 *   else the listener's port;
 * - the port is not written when it is the well-known one of the scheme (http 80, https 443).
 */

import type { PathMatch, RedirectAction } from "../plan/rule.ts";
import { hostnameOf } from "./authority.ts";
import { editPath } from "./rewrite.ts";

export interface RedirectedRequest {
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  /** Raw, without "?". */
  readonly query: string;
  /**
   * The port number that the listener names, which need not be the one that the process has bound.
   */
  readonly listenerPort: number;
  /** The path part of the rule that matched. */
  readonly matched: PathMatch | undefined;
}

export function redirectLocation(action: RedirectAction, request: RedirectedRequest): string {
  const path = locationPath(action, request);
  const target = request.query === "" ? path : `${path}?${request.query}`;
  const host = action.hostname ?? hostnameOf(request.authority);
  // Without any host only a relative reference is left, and two slashes at its start would name
  // one.
  if (host === "") return target.replace(/^\/+/, "/");
  const scheme = action.scheme ?? request.scheme;
  const port =
    action.port ?? (action.scheme === undefined ? undefined : wellKnownPort(scheme)) ?? request.listenerPort;
  return `${scheme}://${host}${port === wellKnownPort(scheme) ? "" : `:${port}`}${target}`;
}

function locationPath(action: RedirectAction, request: RedirectedRequest): string {
  const path = request.path.startsWith("/") ? request.path : "/";
  return action.path === undefined ? path : editPath(path, action.path, request.matched);
}

function wellKnownPort(scheme: string): number | undefined {
  if (scheme === "http") return 80;
  return scheme === "https" ? 443 : undefined;
}
