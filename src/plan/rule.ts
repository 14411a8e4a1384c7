import type { ItemId } from "./plan.ts";

/**
 * One match of one route rule. A rule with several matches stands once per match, with one shared
 * `action`.
 */
export interface Rule {
  readonly origin: RuleOrigin;
  readonly match: RequestMatch;
  readonly action: Action;
  /**
   * The hostname that the route asked for, where it is not the host's own: it decides precedence.
   */
  readonly asked?: string;
  /** Guards that a request must pass before the action, in this order; absent: none. */
  readonly guards?: readonly ItemId[];
}

/** Where a rule comes from, for explanations, logs and metrics. */
export interface RuleOrigin {
  readonly kind: "HTTPRoute" | "GRPCRoute" | "TLSRoute" | "TCPRoute" | "UDPRoute";
  readonly namespace: string;
  readonly name: string;
  /** Index in spec.rules. */
  readonly rule: number;
  readonly ruleName?: string;
  /** Index in the rule's matches. */
  readonly match: number;
}

/**
 * All parts must hold; an absent or empty part always holds. Streams (TLS, TCP, UDP) have no parts.
 */
export interface RequestMatch {
  readonly path?: PathMatch;
  readonly method?: string;
  readonly headers: readonly ValueMatch[];
  readonly query: readonly ValueMatch[];
}

export interface PathMatch {
  /**
   * `prefix` matches whole path elements: /a matches /a and /a/b, not /ab. `regex` matches the
   * whole path.
   */
  readonly type: "exact" | "prefix" | "regex";
  readonly value: string;
}

export interface ValueMatch {
  readonly type: "exact" | "regex";
  /** Header names are in lower case; query parameter names are as given. */
  readonly name: string;
  readonly value: string;
}

export type Action = ForwardAction | RedirectAction | RespondAction;

export interface ForwardAction {
  readonly type: "forward";
  /** Weights are relative; a sum of 0 means that every request is answered with 500. */
  readonly backends: readonly WeightedBackend[];
  readonly filters: Filters;
  readonly timeouts: Timeouts;
  readonly retry?: RetryPolicy;
  readonly persistence?: PersistencePolicy;
  /** Absent: answers of backends are passed on as they are. */
  readonly compression?: CompressionPolicy;
}

/** Milliseconds, never 0. */
export interface Timeouts {
  readonly requestMs?: number;
  readonly backendRequestMs?: number;
  /** Without a byte in either direction, of a request, its answer, or what it was upgraded to. */
  readonly idleMs?: number;
  /** The route turns a timeout off: no limit of the data plane's own may take its place. */
  readonly unbounded?: true;
}

export interface WeightedBackend {
  /** Absent when the reference is invalid: its share of requests is answered with 500. */
  readonly backend?: ItemId;
  readonly weight: number;
  readonly filters: Filters;
}

/** Filters in the order in which they apply within their kind; an absent one does nothing. */
export interface Filters {
  readonly requestHeaders?: readonly HeaderEdit[];
  readonly responseHeaders?: readonly HeaderEdit[];
  readonly rewrite?: { readonly hostname?: string; readonly path?: PathEdit };
  readonly mirrors?: readonly Mirror[];
  readonly cors?: CorsPolicy;
}

export interface HeaderEdit {
  readonly op: "set" | "add" | "remove";
  /** Lower case. */
  readonly name: string;
  readonly value?: string;
}

export interface PathEdit {
  readonly type: "full" | "prefix";
  readonly value: string;
}

export interface Mirror {
  /** Absent when the reference is invalid: nothing is mirrored. */
  readonly backend?: ItemId;
  readonly numerator: number;
  readonly denominator: number;
}

export interface CorsPolicy {
  readonly allowOrigins: readonly string[];
  readonly allowCredentials: boolean;
  readonly allowMethods: readonly string[];
  readonly allowHeaders: readonly string[];
  readonly exposeHeaders: readonly string[];
  readonly maxAgeSeconds: number;
}

export type CompressionAlgorithm = "brotli" | "gzip" | "zstd";

export interface CompressionPolicy {
  /** None twice. The first one is taken where a client likes it as well as any other. */
  readonly algorithms: readonly CompressionAlgorithm[];
  /** A shorter answer is left alone; one whose length nobody knows is not. */
  readonly minBytes: number;
  /** In lower case, without parameters. An answer that has no type is compressed, too. */
  readonly contentTypes: readonly string[];
}

export interface RetryPolicy {
  readonly attempts: number;
  readonly codes: readonly number[];
  /** Requests of other methods are sent as without a retry policy; absent: of all methods. */
  readonly methods?: readonly string[];
  readonly backoffMs?: number;
}

export interface PersistencePolicy {
  readonly type: "cookie" | "header";
  readonly name: string;
  readonly absoluteTimeoutMs?: number;
  readonly permanent: boolean;
  readonly path?: string;
}

export interface RedirectAction {
  readonly type: "redirect";
  readonly scheme?: string;
  readonly hostname?: string;
  readonly port?: number;
  readonly path?: PathEdit;
  readonly statusCode: number;
  readonly filters: Filters;
}

/**
 * A fixed answer: what a rule gets that cannot be served as written (for example all of its
 * references are invalid), or what a policy has put in the rule's place.
 */
export interface RespondAction {
  readonly type: "respond";
  readonly status: number;
  /** Why, in words that name nothing but the route's own content. */
  readonly reason: string;
  /** Of an answer that somebody has written; absent: the data plane has words of its own. */
  readonly content?: ResponseContent;
}

export interface ResponseContent {
  /** A media type. */
  readonly type: string;
  /** At most 4,096 bytes. Clients of gRPC get the status alone. */
  readonly text: string;
  readonly retryAfterSeconds?: number;
}
