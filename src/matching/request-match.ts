/**
 * Whether one match of a rule holds for a request (HTTPRouteMatch): all parts must hold, an absent
 * part always does.
 *
 * - A prefix matches whole path elements, and a trailing slash of the prefix is ignored: `/abc` and
 *   `/abc/` match `/abc`, `/abc/` and `/abc/def`, not `/abcd`.
 * - Regular expressions must match the whole value.
 * - Paths, methods and values are compared with case; header names come in lower case.
 */

import type { PathMatch, RequestMatch, ValueMatch } from "../plan/rule.ts";
import { matchesRegex } from "./regex.ts";
import type { RequestFacts } from "./request.ts";

const SLASH = 47;

export function matchesRequest(match: RequestMatch, facts: RequestFacts): boolean {
  return (
    (match.path === undefined || matchesPath(match.path, facts.request.path)) && matchesRest(match, facts)
  );
}

/** Everything but the path. */
export function matchesRest(match: RequestMatch, facts: RequestFacts): boolean {
  if (match.method !== undefined && match.method !== facts.request.method) return false;
  for (const header of match.headers) {
    if (!matchesValue(header, facts.request.header(header.name))) return false;
  }
  for (const parameter of match.query) {
    if (!matchesValue(parameter, facts.queryParameter(parameter.name))) return false;
  }
  return true;
}

export function matchesPath(match: PathMatch, path: string): boolean {
  switch (match.type) {
    case "exact":
      return match.value === path;
    case "prefix":
      return isUnderPrefix(path, match.value);
    case "regex":
      return matchesRegex(match.value, path);
  }
}

export function matchesValue(match: ValueMatch, value: string | undefined): boolean {
  if (value === undefined) return false;
  return match.type === "exact" ? match.value === value : matchesRegex(match.value, value);
}

/** A prefix without its trailing slash: empty for "/". */
export function prefixElements(prefix: string): string {
  return prefix.endsWith("/") ? prefix.slice(0, -1) : prefix;
}

export function isUnderPrefix(path: string, prefix: string): boolean {
  const trailing = prefix.charCodeAt(prefix.length - 1) === SLASH;
  // The one character after the prefix tells most paths apart before anything is compared or cut.
  if (!endsElement(path, trailing ? prefix.length - 1 : prefix.length)) return false;
  return path.startsWith(trailing ? prefix.slice(0, -1) : prefix);
}

/** The first `length` characters of the path are whole elements. */
export function endsElement(path: string, length: number): boolean {
  return path.length === length || path.charCodeAt(length) === SLASH;
}
