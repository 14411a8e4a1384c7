/**
 * Paths as cloudflared matches them: an unanchored regular expression (Go's RE2) over the decoded
 * path of the request. A path of a route is therefore anchored at both ends, and its text escaped.
 */
import type { PathMatch } from "../../plan/rule.ts";

/** Undefined matches every path. */
export type PathExpression = { readonly pattern: string | undefined } | { readonly problem: string };

export function pathExpression(match: PathMatch | undefined): PathExpression {
  if (match === undefined) return { pattern: undefined };
  const { type, value } = match;
  if (type === "regex") return { pattern: `^(?:${value})$` };
  // What is escaped in a route's path stays escaped; cloudflared compares the decoded path and
  // cannot tell %2F from a slash.
  if (value.includes("%"))
    return { problem: "a path with an escaped character: cloudflared compares decoded paths" };
  if (type === "exact") return { pattern: `^${quoted(value)}$` };
  const elements = value.endsWith("/") ? value.slice(0, -1) : value;
  return { pattern: elements === "" ? undefined : `^${quoted(elements)}(?:/|$)` };
}

function quoted(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
}
