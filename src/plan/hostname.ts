/**
 * Hostname patterns (seed 002, "Listeners that are distinct only by Hostname"): `*.example.com` matches any number of labels to the left
 * and not `example.com` itself; an empty pattern matches every name.
 */
export function isWildcard(pattern: string): boolean {
  return pattern.startsWith("*.");
}

/** Whether every name that `inner` matches is matched by `outer` too. */
export function covers(outer: string, inner: string): boolean {
  if (outer === "" || outer === inner) return true;
  if (inner === "" || !isWildcard(outer)) return false;
  return inner.endsWith(outer.slice(1)) && inner.length > outer.length - 1;
}

/** The pattern that matches exactly what both match, or nothing when they have no name in common. */
export function intersection(a: string, b: string): string | undefined {
  if (covers(a, b)) return b;
  if (covers(b, a)) return a;
  return undefined;
}

/** Orders patterns from most to least specific: exact names, then wildcards with more labels, then the empty pattern. */
export function compareSpecificity(a: string, b: string): number {
  return specificity(b) - specificity(a);
}

function specificity(pattern: string): number {
  if (pattern === "") return 0;
  const labels = pattern.split(".").length;
  return isWildcard(pattern) ? labels : 1000 + labels;
}
