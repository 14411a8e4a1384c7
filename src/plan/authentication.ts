/**
 * Guards that ask who sends a request: they let it pass with credentials, or with the consent of
 * another service. Whatever cannot be decided (the service is away, a key cannot be had) lets
 * nothing pass.
 *
 * Fields that a check sets are the gateway's word: what a client sends under their names, or under
 * a twin (`X_User` for `X-User`), never reaches a backend. The first check that sets a field
 * decides its value.
 */
import type { ItemId } from "./plan.ts";

export type AuthenticationCheck = ExternalAuthCheck | BasicAuthCheck | ApiKeyCheck | JwtCheck;

/**
 * Another service is asked. Over HTTP it gets a request of its own: 2xx lets the request pass; 3xx
 * and 4xx are the client's answer; anything else, or nothing in time, is 503. Over gRPC it gets
 * `envoy.service.auth.v3.Authorization/Check`, and a status of gRPC other than OK is 503.
 */
export interface ExternalAuthCheck {
  readonly type: "externalAuth";
  readonly backend: ItemId;
  /** Absent: HTTP. */
  readonly protocol?: "grpc";
  /**
   * `prefix`: the method and the path of the request, behind this prefix. `exact`: GET of this
   * path. Both have the method, path and query of the request in X-Forwarded-Method and
   * X-Forwarded-Uri. gRPC has no path of its own.
   */
  readonly path: { readonly type: "prefix" | "exact"; readonly value: string };
  /**
   * Fields of the request that the service gets, over HTTP besides Host, Authorization and
   * X-Forwarded-*. Absent: all. Lower case, like all names here.
   */
  readonly requestHeaders?: readonly string[];
  /**
   * Fields of an answer that lets the request pass, for the backend. Absent: all of them, but none
   * that frames or describes the answer itself.
   */
  readonly responseHeaders?: readonly string[];
  /** Only 200 lets a request pass, and another 2xx is 403. */
  readonly onlyOk?: true;
  /** The service gets the body, up to this many bytes; a longer one is 413. Absent: no body. */
  readonly maxBodyBytes?: number;
  /** Fields of an answer that lets the request pass, for the client. Absent: Set-Cookie alone. */
  readonly clientHeaders?: readonly string[];
  /** Fields of a refusal that the client gets. */
  readonly refusalHeaders: readonly string[];
  readonly timeoutMs: number;
}

/** User and password (RFC 7617); who has none that fits gets 401. Backends do not see them. */
export interface BasicAuthCheck {
  readonly type: "basicAuth";
  /** Lines of an htpasswd file: `user:hash`. */
  readonly users: ClientCredentials;
  /** Carries the name of the user to the backend. */
  readonly userHeader?: string;
}

/** A key in a header or in the query; who has none that fits gets 401. Backends do not see it. */
export interface ApiKeyCheck {
  readonly type: "apiKeys";
  /** A line for each client: `client:key`. */
  readonly keys: ClientCredentials;
  /** Where a key may be; a request must not have two. */
  readonly headers: readonly string[];
  readonly queries: readonly string[];
  /** Carries the name of the client to the backend. */
  readonly clientHeader?: string;
}

/**
 * A bearer token that one of the issuers has signed; who has none that fits gets 401, and 403
 * without a claim that is required. Backends get the token.
 */
export interface JwtCheck {
  readonly type: "jwt";
  readonly issuers: readonly JwtIssuer[];
  /** The token must have each of these claims, with one of its values. */
  readonly requiredClaims: readonly { readonly claim: string; readonly values: readonly string[] }[];
  /** Carry claims to the backend. */
  readonly claimHeaders: readonly { readonly claim: string; readonly header: string }[];
}

/** Of one issuer. A token that does not name its key may be tried with all of them. */
export const MOST_KEYS = 100;

export interface JwtIssuer {
  readonly issuer: string;
  /** The token must be for one of them; absent: for anybody. */
  readonly audiences?: readonly string[];
  /** A JSON Web Key Set (RFC 7517). */
  readonly keys:
    | { readonly type: "inline"; readonly jwks: string }
    | { readonly type: "remote"; readonly url: string };
}

/** What proves who somebody is. Printing, logging or serialising it gives a placeholder. */
export class ClientCredentials {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** For the check itself, and for those who hand it to a data plane. */
  reveal(): string {
    return this.#text;
  }

  equals(other: unknown): boolean {
    return other instanceof ClientCredentials && other.#text === this.#text;
  }

  toString(): string {
    return "[credentials]";
  }

  toJSON(): string {
    return "[credentials]";
  }
}

const AUTHENTICATION: ReadonlySet<string> = new Set<AuthenticationCheck["type"]>([
  "externalAuth",
  "basicAuth",
  "apiKeys",
  "jwt",
]);

export function isAuthentication(check: { readonly type: string }): check is AuthenticationCheck {
  return AUTHENTICATION.has(check.type);
}

/**
 * Header fields that the backend gets from the check, and from nobody else. A check may set others,
 * if its service names them in its answer.
 */
export function headersSetBy(check: AuthenticationCheck): readonly string[] {
  switch (check.type) {
    case "externalAuth":
      return check.responseHeaders ?? [];
    case "basicAuth":
      return check.userHeader === undefined ? [] : [check.userHeader];
    case "apiKeys":
      return check.clientHeader === undefined ? [] : [check.clientHeader];
    case "jwt":
      return check.claimHeaders.map(({ header }) => header);
  }
}

/** The check in a form that can be serialised and posted; `withCredentials` undoes it. */
export function withPlainCredentials<Check extends { readonly type: string }>(check: Check): object {
  if (!isAuthentication(check)) return check;
  if (check.type === "basicAuth") return { ...check, users: check.users.reveal() };
  if (check.type === "apiKeys") return { ...check, keys: check.keys.reveal() };
  return check;
}

export function withCredentials<Check extends { readonly type: string }>(check: Check): Check {
  if (!isAuthentication(check)) return check;
  if (check.type === "basicAuth") return { ...check, users: new ClientCredentials(String(check.users)) };
  if (check.type === "apiKeys") return { ...check, keys: new ClientCredentials(String(check.keys)) };
  return check;
}
