/**
 * Whether one match holds for every request that another holds for. Only what is certain counts: a
 * "no" may mean "cannot tell", since the languages of two regular expressions are compared by their
 * text alone.
 */

import type { PathMatch, RequestMatch, ValueMatch } from "../../plan/rule.ts";
import { matchesRegex } from "../regex.ts";
import { isUnderPrefix, matchesPath, prefixElements } from "../request-match.ts";

export function coversMatch(wide: RequestMatch, narrow: RequestMatch): boolean {
  return coversPath(wide.path, narrow.path) && coversRest(wide, narrow);
}

/** Everything but the path. */
function coversRest(wide: RequestMatch, narrow: RequestMatch): boolean {
  if (wide.method !== undefined && wide.method !== narrow.method) return false;
  return impliesAll(narrow.headers, wide.headers) && impliesAll(narrow.query, wide.query);
}

function coversPath(wide: PathMatch | undefined, narrow: PathMatch | undefined): boolean {
  if (wide === undefined) return true;
  // A rule without path also takes "*", which is under no prefix.
  if (narrow === undefined) return false;
  switch (narrow.type) {
    case "exact":
      return matchesPath(wide, narrow.value);
    case "prefix":
      return wide.type === "prefix" && isUnderPrefix(prefixElements(narrow.value), wide.value);
    case "regex":
      if (wide.type === "regex") return wide.value === narrow.value;
      return wide.type === "prefix" && prefixElements(wide.value) === "" && !matchesRegex(narrow.value, "*");
  }
}

function impliesAll(known: readonly ValueMatch[], wanted: readonly ValueMatch[]): boolean {
  return wanted.every((want) => known.some((have) => implies(have, want)));
}

function implies(have: ValueMatch, want: ValueMatch): boolean {
  if (have.name !== want.name) return false;
  if (have.type === want.type) return have.value === want.value;
  return have.type === "exact" && matchesRegex(want.value, have.value);
}
