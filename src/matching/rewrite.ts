/**
 * Changing a path, for redirects and rewrites (HTTPPathModifier).
 *
 * A prefix is replaced by whole elements; a trailing slash of the matched prefix or of its
 * replacement is ignored, and a path that would become empty is "/". What the route's owner wrote
 * is a path and nothing else: it cannot begin a query or end a header line.
 */

import type { PathEdit, PathMatch } from "../plan/rule.ts";
import { isUnderPrefix, prefixElements } from "./request-match.ts";

/**
 * `matched` is the path part of the rule that matched; without one, the rule stands for the prefix
 * "/".
 */
export function editPath(path: string, edit: PathEdit, matched: PathMatch | undefined): string {
  if (edit.type === "full") return absolute(asPath(edit.value));
  // The engine accepts a prefix replacement beside prefix matches only.
  if (matched !== undefined && matched.type !== "prefix") return path;
  const prefix = matched?.value ?? "/";
  if (!isUnderPrefix(path, prefix)) return path;
  return absolute(prefixElements(asPath(edit.value)) + path.slice(prefixElements(prefix).length));
}

function absolute(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

/** Percent-encodes what cannot stand in the path of a request line or of a Location. */
function asPath(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x7e]|[?#]/gu, encodeURIComponent);
}
