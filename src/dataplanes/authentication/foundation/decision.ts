/** What is known of a request when it is asked who sends it. */
export interface AuthenticationRequest {
  readonly method: string;
  /** The Host field or `:authority`. */
  readonly authority: string;
  readonly path: string;
  /** Without the question mark; empty: none. */
  readonly query: string;
  /**
   * Lower-case names, several values joined; the client's, and X-Forwarded-* of the gateway. Values
   * of fields are strings of bytes (Latin-1) here and in answers, as those of node:http are.
   */
  readonly headers: ReadonlyMap<string, string>;
  /** The whole body, where a guard of the rule wants it. */
  readonly body?: Uint8Array;
  /** Whoever has opened the connection, which may be a proxy. */
  readonly peer?: string;
  /** `HTTP/1.1` or another one. */
  readonly protocol?: string;
}

/** What a check says of a request. */
export type Decision = PermittedRequest | Refusal;

export interface PermittedRequest {
  readonly allowed: true;
  /** Fields that the backend gets. */
  readonly set: FieldList;
  /** Fields and query parameters that carried credentials: the backend does not get them. */
  readonly hiddenHeaders?: readonly string[];
  readonly hiddenQueries?: readonly string[];
  /** Fields that the client gets with the answer to its request. */
  readonly answer?: FieldList;
}

export type FieldList = readonly (readonly [name: string, value: string])[];

export interface Refusal {
  readonly allowed: false;
  readonly status: number;
  /** A short CamelCase word for logs. */
  readonly reason: string;
  readonly headers: FieldList;
  readonly body: Uint8Array | string;
}

export function allow(
  set: PermittedRequest["set"] = [],
  hidden: Partial<PermittedRequest> = {},
): PermittedRequest {
  return { ...hidden, allowed: true, set };
}

/** `challenge`: of WWW-Authenticate (RFC 9110, 11.6.1). */
export function unauthenticated(challenge: string): Refusal {
  return {
    allowed: false,
    status: 401,
    reason: "Unauthenticated",
    headers: [["www-authenticate", challenge]],
    body: "this request needs valid credentials\n",
  };
}

/** Nobody could say whether the request may pass. */
export const UNDECIDED: Refusal = {
  allowed: false,
  status: 503,
  reason: "AuthenticationUnavailable",
  headers: [],
  body: "it cannot be found out whether this request may pass\n",
};

/** The service does not say yes, and nothing else that a client could be told. */
export const FORBIDDEN: Refusal = {
  allowed: false,
  status: 403,
  reason: "ExternallyRefused",
  headers: [],
  body: "this request may not pass\n",
};

/** A service is to judge the body, and it is longer than the service gets it. */
export const TOO_LARGE: Refusal = {
  allowed: false,
  status: 413,
  reason: "BodyTooLarge",
  headers: [],
  body: "the request body is too large\n",
};

/** A guard is missing or cannot be applied. */
export const UNUSABLE: Refusal = {
  allowed: false,
  status: 500,
  reason: "PolicyUnavailable",
  headers: [],
  body: "a policy of this route cannot be applied\n",
};
