/**
 * Which endpoint of a backend gets a request.
 *
 * - `leastRequest`: the less busy one of two that are drawn at random.
 * - `hash`: requests of one key reach one endpoint for as long as it is there. When an endpoint
 *   comes or goes, about its own share of the keys moves, and no others. Which endpoint it is
 *   differs between kinds of data planes, never between pods of one. Requests without the key
 *   reach any endpoint.
 */
export type LoadBalancing =
  | { readonly type: "roundRobin" | "leastRequest" | "random" }
  | { readonly type: "hash"; readonly key: HashKey };

/** What a request is told apart by. Names of headers are in lower case. */
export type HashKey =
  | { readonly type: "header" | "cookie"; readonly name: string }
  /** The address as `ClientAddressPlan` finds it. */
  | { readonly type: "client" };
