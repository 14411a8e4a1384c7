import { coversPattern, isWildcard } from "../plan/hostname.ts";

/** A wildcard of a certificate matches exactly one label, a wildcard of a listener any number. */
export function isFor(name: string, hostname: string): boolean {
  if (name === hostname) return true;
  if (!isWildcard(name) || isWildcard(hostname)) return false;
  return hostname.slice(hostname.indexOf(".")) === name.slice(1);
}

/** Whether a name of a certificate is for some name that the listener's hostname matches. */
export function overlapsName(name: string, hostname: string): boolean {
  return isFor(name, hostname) || (isWildcard(hostname) && coversPattern(hostname, name));
}
