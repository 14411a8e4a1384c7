/** The endpoints of a backend in the order in which a request tries them. */
import type { Endpoint } from "../../../plan/backend.ts";
import type { HashKey } from "../../../plan/load-balancing.ts";
import { byKey } from "./rendezvous.ts";

/** What of a request decides where it goes. */
export interface BalancedRequest {
  /** By a name in lower case. */
  header(name: string): string | undefined;
  readonly client: { readonly address: string };
}

export function startingAt(endpoints: readonly Endpoint[], start: number): readonly Endpoint[] {
  return start === 0 ? endpoints : [...endpoints.slice(start), ...endpoints.slice(0, start)];
}

export function atRandom(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return startingAt(endpoints, Math.floor(Math.random() * endpoints.length));
}

/** The less busy one of two, then those that follow it. */
export function lessBusy(
  endpoints: readonly Endpoint[],
  activeAt: (endpoint: Endpoint) => number,
): readonly Endpoint[] {
  const first = Math.floor(Math.random() * endpoints.length);
  const other = (first + 1 + Math.floor(Math.random() * (endpoints.length - 1))) % endpoints.length;
  const active = (at: number): number => activeAt(endpoints[at] as Endpoint);
  return startingAt(endpoints, active(other) < active(first) ? other : first);
}

export function hashed(
  endpoints: readonly Endpoint[],
  key: HashKey,
  request: BalancedRequest,
): readonly Endpoint[] {
  const value = keyValue(key, request);
  return value === undefined ? atRandom(endpoints) : byKey(endpoints, value);
}

function keyValue(key: HashKey, request: BalancedRequest): string | undefined {
  switch (key.type) {
    case "client":
      return request.client.address;
    case "header":
      return request.header(key.name);
    case "cookie":
      return cookieOf(request.header("cookie"), key.name);
  }
}

/** The first cookie of a name (RFC 6265, 4.2.1). */
export function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const equals = pair.indexOf("=");
    if (equals >= 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return undefined;
}
