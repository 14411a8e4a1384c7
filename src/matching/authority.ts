/**
 * Names as they arrive on the wire: `host`, `host:port`, `[v6]:port`, in any case, with or without
 * the root's dot. An IPv6 literal keeps its brackets, so that the name can stand in a URL as it is.
 */

const DOT = 46;
const BRACKET = 91;

/** The name of an authority (Host header or `:authority`): lower case, no port, no trailing dot. */
export function hostnameOf(authority: string): string {
  if (authority.charCodeAt(0) === BRACKET) {
    const end = authority.indexOf("]");
    return (end < 0 ? authority : authority.slice(0, end + 1)).toLowerCase();
  }
  const colon = authority.indexOf(":");
  return normalizeName(colon < 0 ? authority : authority.slice(0, colon));
}

/** A DNS name without port (SNI, or the host part of an authority): lower case, no trailing dot. */
export function normalizeName(name: string): string {
  const last = name.length - 1;
  const trimmed = last >= 0 && name.charCodeAt(last) === DOT ? name.slice(0, last) : name;
  return trimmed.toLowerCase();
}
