/**
 * Hostname patterns of listeners and hosts (Gateway.spec.listeners, Listeners that are distinct
 * only by Hostname):
 *
 * - `foo.example.com` matches that name alone;
 * - `*.example.com` matches any number of labels, at least one, to the left of `.example.com`, so
 *   never `example.com` itself;
 * - the empty pattern matches every name, also no name at all.
 *
 * Exact comes before wildcard and wildcard before empty; between wildcards, more dots to the right
 * of the `*` come first. Two patterns are either disjoint or one covers the other: that is why an
 * intersection is always one of the two.
 *
 * Patterns and names are in lower case, names without a trailing dot.
 */

export function isWildcard(pattern: string): boolean {
  return pattern.startsWith("*.");
}

const LABEL = "[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?";
const PATTERN = new RegExp(`^(\\*\\.)?${LABEL}(\\.${LABEL})*$`);
const LONGEST = 253;

/**
 * Whether a text that is not empty is a pattern at all. The API's schemas see to it; a data plane
 * would refuse a whole port for one that is none.
 */
export function isPattern(text: string): boolean {
  return text.length <= LONGEST && PATTERN.test(text);
}

export function matchesName(pattern: string, name: string): boolean {
  if (pattern === "") return true;
  if (!isWildcard(pattern)) return pattern === name;
  return name.length >= pattern.length && name.endsWith(pattern.slice(1));
}

/** Every name that `narrow` matches is matched by `wide`, too. */
export function coversPattern(wide: string, narrow: string): boolean {
  if (wide === "" || wide === narrow) return true;
  if (narrow === "" || !isWildcard(wide)) return false;
  return isWildcard(narrow) ? narrow.slice(1).endsWith(wide.slice(1)) : matchesName(wide, narrow);
}

/** Some name is matched by both. */
export function patternsOverlap(a: string, b: string): boolean {
  return coversPattern(a, b) || coversPattern(b, a);
}

/** The names that both match, as the more specific of the two; undefined if there are none. */
export function intersectPatterns(a: string, b: string): string | undefined {
  if (coversPattern(a, b)) return b;
  return coversPattern(b, a) ? a : undefined;
}

/**
 * Negative when `a` comes before `b`. Patterns that match one and the same name never compare equal
 * unless they are equal.
 */
export function compareSpecificity(a: string, b: string): number {
  return specificityOf(b) - specificityOf(a);
}

/** Exact: infinite; wildcard: its dots; empty: 0. A wildcard has at least the dot after its `*`. */
function specificityOf(pattern: string): number {
  if (pattern === "") return 0;
  return isWildcard(pattern) ? countDots(pattern) : Number.MAX_SAFE_INTEGER;
}

function countDots(text: string): number {
  let dots = 0;
  for (let at = text.indexOf("."); at >= 0; at = text.indexOf(".", at + 1)) dots++;
  return dots;
}
