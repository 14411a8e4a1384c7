import { prefixElements } from "../../../../matching/request-match.ts";
import { editPath } from "../../../../matching/rewrite.ts";
import type { PathEdit, PathMatch } from "../../../../plan/rule.ts";

export interface PathSubstitution {
  readonly pattern: string;
  readonly replacement: string;
}

/** What `editPath` does, as one regular expression over the path. Undefined: nothing changes. */
export function pathSubstitution(
  edit: PathEdit,
  matched: PathMatch | undefined,
): PathSubstitution | undefined {
  if (edit.type === "full")
    return { pattern: "^.*$", replacement: escapedReplacement(editPath("/", edit, matched)) };
  if (matched !== undefined && matched.type !== "prefix") return undefined;
  const prefix = prefixElements(matched?.value ?? "/");
  const value = prefixElements(editPath("/", { type: "full", value: edit.value }, undefined));
  if (prefix === value) return undefined;
  // With an empty replacement the slash after the prefix becomes the path's own, or is put there if
  // the path ends.
  if (value === "") return { pattern: `^${escapedPattern(prefix)}/?`, replacement: "/" };
  return { pattern: `^${escapedPattern(prefix)}`, replacement: escapedReplacement(value) };
}

export function fullPath(edit: PathEdit): string {
  return editPath("/", edit, undefined);
}

function escapedPattern(literal: string): string {
  return literal.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function escapedReplacement(literal: string): string {
  return literal.replaceAll("\\", "\\\\");
}
