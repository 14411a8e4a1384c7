import { RE2JS } from "re2js";

/**
 * Tenants' regular expressions in RE2 syntax, matched against the whole text in linear time.
 *
 * Compiled once per distinct pattern and kept in two generations: a pattern in use moves to the
 * young one before the old one is dropped, so the memory is bounded and a hit costs one lookup.
 */
const GENERATION = 4096;
let young = new Map<string, RE2JS | null>();
let old = new Map<string, RE2JS | null>();

/**
 * A pattern that does not compile matches nothing: the engine has refused its rule, this is only
 * the second line of defence.
 */
export function matchesRegex(pattern: string, text: string): boolean {
  return compiled(pattern)?.testExact(text) ?? false;
}

function compiled(pattern: string): RE2JS | null {
  const hit = young.get(pattern);
  if (hit !== undefined) return hit;
  const regex = old.get(pattern) ?? compile(pattern);
  if (young.size >= GENERATION) {
    old = young;
    young = new Map();
  }
  young.set(pattern, regex);
  return regex;
}

function compile(pattern: string): RE2JS | null {
  try {
    return RE2JS.compile(pattern);
  } catch {
    return null;
  }
}
