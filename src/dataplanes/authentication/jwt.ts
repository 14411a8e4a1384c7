/**
 * JSON Web Tokens (RFC 7519) as bearer tokens (RFC 6750): signed by a key of their issuer, for the
 * right audience, and not expired. Only signatures of public keys count.
 */
import {
  type CryptoKey,
  createLocalJWKSet,
  decodeJwt,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import type { JwtCheck, JwtIssuer } from "../../plan/authentication.ts";
import {
  type AuthenticationRequest,
  allow,
  type Decision,
  type Refusal,
  UNDECIDED,
  unauthenticated,
} from "./foundation/decision.ts";
import { RemoteKeys } from "./remote-keys.ts";

const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
const MISSING = "Bearer";
const INVALID = 'Bearer error="invalid_token"';
/** Clocks of issuers differ. */
const TOLERANCE_SECONDS = 60;

const FORBIDDEN: Refusal = {
  allowed: false,
  status: 403,
  reason: "ClaimsRefused",
  headers: [["www-authenticate", 'Bearer error="insufficient_scope"']],
  body: "this token does not allow the request\n",
};

/** Issuers are immutable parts of the plan; their keys go with them. */
const keySets: WeakMap<JwtIssuer, JWTVerifyGetKey> = new WeakMap();

export async function checkJwt(check: JwtCheck, { headers }: AuthenticationRequest): Promise<Decision> {
  const token = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (token === undefined) return unauthenticated(MISSING);
  const issuer = issuerOf(check, token);
  const payload = issuer && (await verified(token, issuer));
  if (payload === undefined) return unauthenticated(INVALID);
  if (payload === "undecided") return UNDECIDED;
  if (!check.requiredClaims.every(({ claim, values }) => hasClaim(payload, claim, values))) return FORBIDDEN;
  return allow(
    check.claimHeaders.flatMap(({ claim, header }) => {
      const value = fieldOf(claimOf(payload, claim));
      return value === undefined ? [] : [[header, value] as const];
    }),
  );
}

/** By what the token says of itself; its signature must prove it. */
function issuerOf({ issuers }: JwtCheck, token: string): JwtIssuer | undefined {
  try {
    const { iss } = decodeJwt(token);
    return issuers.find(({ issuer }) => issuer === iss);
  } catch {
    return undefined;
  }
}

async function verified(token: string, issuer: JwtIssuer): Promise<JWTPayload | "undecided" | undefined> {
  const options = {
    issuer: issuer.issuer,
    algorithms: ALGORITHMS,
    clockTolerance: TOLERANCE_SECONDS,
    requiredClaims: ["exp"],
    ...(issuer.audiences === undefined ? {} : { audience: [...issuer.audiences] }),
  };
  try {
    return (await jwtVerify(token, keysOf(issuer), options)).payload;
  } catch (error) {
    if (error instanceof errors.JWKSMultipleMatchingKeys) return await verifiedByAny(token, error, options);
    return isAboutToken(error) ? undefined : "undecided";
  }
}

/** Several keys of the set may have signed a token that does not name its key. */
async function verifiedByAny(
  token: string,
  keys: AsyncIterable<CryptoKey>,
  options: Parameters<typeof jwtVerify>[2],
): Promise<JWTPayload | undefined> {
  for await (const key of keys) {
    try {
      return (await jwtVerify(token, key, options)).payload;
    } catch {
      // The next one may be it.
    }
  }
  return undefined;
}

/** Whether a token is wrong, rather than that its keys cannot be had. */
function isAboutToken(error: unknown): boolean {
  return (
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWTExpired ||
    error instanceof errors.JWTClaimValidationFailed ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JOSEAlgNotAllowed ||
    error instanceof errors.JOSENotSupported
  );
}

function keysOf(issuer: JwtIssuer): JWTVerifyGetKey {
  const known = keySets.get(issuer);
  if (known !== undefined) return known;
  const keys =
    issuer.keys.type === "inline"
      ? createLocalJWKSet(JSON.parse(issuer.keys.jwks))
      : new RemoteKeys(issuer.keys.url).find;
  keySets.set(issuer, keys);
  return keys;
}

/** `a.b` is a claim of that name, or `b` within `a`. */
function claimOf(payload: JWTPayload, claim: string): unknown {
  if (Object.hasOwn(payload, claim)) return payload[claim];
  return claim.split(".").reduce<unknown>((value, name) => {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    return (value as Record<string, unknown>)[name];
  }, payload);
}

/** The claim is one of the values, a list with one of them, or a scope with one of them. */
function hasClaim(payload: JWTPayload, claim: string, values: readonly string[]): boolean {
  const value = claimOf(payload, claim);
  const given = claim === "scope" && typeof value === "string" ? value.split(" ") : [value].flat();
  return given.some((each) => isPlain(each) && values.includes(String(each)));
}

/** Visible ASCII and spaces: what every field can carry. Anything else is left out. */
function fieldOf(value: unknown): string | undefined {
  const all = [value].flat();
  if (!all.every(isPlain)) return undefined;
  const text = all.join(",");
  return /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/.test(text) ? text : undefined;
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
