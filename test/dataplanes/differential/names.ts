/** The small universe that random configurations and requests draw from, so that they meet. */

export const TEAMS = ["team-a", "team-b"] as const;
export const PLATFORM = "platform";

/**
 * Ports as listeners name them, the usual ones more often. The last one is for whoever asks where
 * nobody listens.
 */
export const HTTP_PORTS = [80, 80, 80, 8080] as const;
export const TLS_PORTS = [443, 443, 443, 8443] as const;
export const UNUSED_PORT = 9999;
export const PORTS: ReadonlySet<number> = new Set([...HTTP_PORTS, ...TLS_PORTS, UNUSED_PORT]);

export const PATTERNS = ["a.test", "b.test", "sub.a.test", "*.a.test", "*.sub.a.test", "*.test"] as const;

/**
 * `wire` is behind TLS passthrough and speaks TLS itself; `none` has no endpoints; `gone` does not
 * exist.
 */
export const SERVICES = ["one", "two", "none", "gone"] as const;
export const SERVING = ["one", "two"] as const;
export const WIRE = "wire";
export const SERVICE_PORT = 7000;

/** The header by which a backend says who it is. */
export const ANSWERED_BY = "x-answered-by";

export function backendName(namespace: string, service: string): string {
  return `${namespace}/${service}`;
}
