/**
 * Tokens in a TrafficPolicy: issuers, and where their keys are. A key set that is written down is
 * read here, so that a mistake is told before a request meets it; one at a URL is fetched by data
 * planes.
 */
import type { JwtIssuerSettings, JwtSettings } from "../../api/authentication.ts";
import { keyFor } from "../../api/key.ts";
import type { Lookup } from "../../graph/lookup.ts";
import { type JwtCheck, type JwtIssuer, MOST_KEYS } from "../../plan/authentication.ts";
import { wrongSetName } from "../foundation/field-names.ts";
import type { Inputs } from "../foundation/inputs.ts";
import type { Failure } from "../foundation/verdict.ts";

interface ReferringIssuer extends Omit<JwtIssuer, "keys"> {
  readonly keys: JwtIssuer["keys"] | { readonly type: "configMap"; readonly name: string };
}

export type ReferringJwtCheck = Omit<JwtCheck, "issuers"> & { readonly issuers: readonly ReferringIssuer[] };

export function readJwt(written: JwtSettings): ReferringJwtCheck | { readonly problem: string } {
  const { issuers, requiredClaims = [], claimHeaders = [] } = written;
  const wrong = wrongSetName(claimHeaders.map(({ header }) => header));
  if (wrong !== undefined) return wrong;
  if (issuers.length === 0) return { problem: "issuers has none" };
  const names = new Set(issuers.map(({ issuer }) => issuer));
  if (names.size < issuers.length) return { problem: "issuers has one twice" };
  const read: ReferringIssuer[] = [];
  for (const [index, each] of issuers.entries()) {
    const issuer = readIssuer(each);
    if ("problem" in issuer) return { problem: `issuers[${index}].${issuer.problem}` };
    read.push(issuer);
  }
  return {
    type: "jwt",
    issuers: read,
    requiredClaims,
    claimHeaders: claimHeaders.map(({ claim, header }) => ({ claim, header: header.toLowerCase() })),
  };
}

/** Nobody else can answer in the issuer's name. */
const HTTPS =
  /^https:\/\/[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:\/[-A-Za-z0-9._~!$&'()*+,;=:@%/]*)?(?:\?[-A-Za-z0-9._~!$&'()*+,;=:@%/?]*)?$/;

function readIssuer({
  issuer,
  audiences,
  jwks,
}: JwtIssuerSettings): ReferringIssuer | { readonly problem: string } {
  const { inline, configMapRef, url } = jwks;
  const given = [inline, configMapRef, url].filter((each) => each !== undefined);
  if (given.length !== 1) return { problem: "jwks is one of inline, configMapRef and url" };
  const common = { issuer, ...(audiences === undefined ? {} : { audiences }) };
  if (configMapRef !== undefined) return { ...common, keys: { type: "configMap", name: configMapRef.name } };
  if (url !== undefined) {
    if (!HTTPS.test(url)) return { problem: "jwks.url is not a URL of https" };
    return { ...common, keys: { type: "remote", url } };
  }
  const problem = keySetProblem(inline ?? "");
  if (problem !== undefined) return { problem: `jwks.inline ${problem}` };
  return { ...common, keys: { type: "inline", jwks: inline ?? "" } };
}

const LARGEST_KEY_SET = 1024 * 1024;
const PUBLIC_KEYS: readonly unknown[] = ["RSA", "EC", "OKP"];

/** Why a text is no set of public keys (RFC 7517, 5). */
function keySetProblem(text: string): string | undefined {
  if (text.length > LARGEST_KEY_SET) return "is larger than 1 MiB";
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    return "is not JSON";
  }
  const keys = isObject(set) ? set["keys"] : undefined;
  if (!Array.isArray(keys) || keys.length === 0) return "has no keys";
  if (keys.length > MOST_KEYS) return `has more than ${MOST_KEYS} keys`;
  if (!keys.every((key) => isObject(key) && PUBLIC_KEYS.includes(key["kty"])))
    return "has a key that is not a public one";
  return keys.some((key) => "d" in key) ? "has a private key" : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

export function resolveJwt(
  check: ReferringJwtCheck,
  namespace: string,
  lookup: Lookup,
  { inputs }: { readonly inputs: Inputs },
): { readonly check: JwtCheck } | { readonly failure: Failure } {
  const issuers: JwtIssuer[] = [];
  for (const { keys, ...issuer } of check.issuers) {
    if (keys.type !== "configMap") {
      issuers.push({ ...issuer, keys });
      continue;
    }
    const jwks = lookup.get(inputs.configMaps, keyFor("ConfigMap", namespace, keys.name))?.data?.[
      "jwks.json"
    ];
    const problem = jwks === undefined ? "does not exist, or has no jwks.json" : keySetProblem(jwks);
    if (jwks === undefined || problem !== undefined)
      return { failure: { reason: "InvalidKeySetRef", message: `ConfigMap ${keys.name} ${problem}` } };
    issuers.push({ ...issuer, keys: { type: "inline", jwks } });
  }
  return { check: { ...check, issuers } };
}
