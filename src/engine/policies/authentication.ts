/**
 * Authentication in a TrafficPolicy: what is written is read without looking at anything else, and
 * what it refers to is looked up for each Gateway. A reference that does not resolve leaves the
 * guard out of the plan, so that what it guards stays closed.
 *
 * - Secrets are those of the policy's own namespace. Messages never quote what is in them.
 * - A Service of another namespace needs a ReferenceGrant for TrafficPolicies.
 */
import type {
  ApiKeySettings,
  AuthenticationSettings,
  BasicAuthSettings,
  ExternalAuthSettings,
} from "../../api/authentication.ts";
import { type Key, keyFor } from "../../api/key.ts";
import type { BackendObjectReference } from "../../api/references.ts";
import { GROUP_OF_KIND } from "../../api/resource.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type {
  ApiKeyCheck,
  AuthenticationCheck,
  BasicAuthCheck,
  ExternalAuthCheck,
} from "../../plan/authentication.ts";
import { milliseconds } from "../foundation/durations.ts";
import { wrongName, wrongSetName } from "../foundation/field-names.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { type BackendTarget, backendId } from "../foundation/item-ids.ts";
import type { Failure } from "../foundation/verdict.ts";
import { resolveBackend } from "../references/backends.ts";
import type { Grants } from "../references/grants.ts";
import type { ServiceEndpoints } from "../references/refused-endpoints.ts";
import { AUTHORIZATION_TIMEOUT_MS, LARGEST_FORWARDED_BODY, REFUSAL_HEADERS } from "../rules/external-auth.ts";
import { readApiKeys, readHtpasswd } from "./credentials.ts";
import { type ReferringJwtCheck, readJwt, resolveJwt } from "./jwt.ts";

/** A check with the references as they are written. */
export type ReferringCheck =
  | (Omit<ExternalAuthCheck, "backend"> & { readonly service: BackendObjectReference })
  | (Omit<BasicAuthCheck, "users"> & { readonly secret: string })
  | (Omit<ApiKeyCheck, "keys"> & { readonly secret: string })
  | ReferringJwtCheck;

export const AUTHENTICATION_FIELDS = ["apiKeys", "basicAuth", "jwt", "externalAuth"] as const;

export function isAuthenticationField(field: string): boolean {
  return (AUTHENTICATION_FIELDS as readonly string[]).includes(field);
}

type Reading = ReferringCheck | { readonly problem: string };

/** The check of each field that is set, or what is wrong with it. */
export function readAuthentication(
  written: AuthenticationSettings,
): readonly (readonly [field: (typeof AUTHENTICATION_FIELDS)[number], reading: Reading])[] {
  const { apiKeys, basicAuth, jwt, externalAuth } = written;
  return [
    ...(apiKeys === undefined ? [] : [["apiKeys", readKeys(apiKeys)] as const]),
    ...(basicAuth === undefined ? [] : [["basicAuth", readBasic(basicAuth)] as const]),
    ...(jwt === undefined ? [] : [["jwt", readJwt(jwt)] as const]),
    ...(externalAuth === undefined ? [] : [["externalAuth", readExternal(externalAuth)] as const]),
  ];
}

function readKeys({ secretRef, headers = [], queryParameters = [], clientHeader }: ApiKeySettings): Reading {
  const wrong = wrongName(headers) ?? wrongSetName(clientHeader === undefined ? [] : [clientHeader]);
  if (wrong !== undefined) return wrong;
  if (headers.length + queryParameters.length === 0)
    return { problem: "headers or queryParameters is needed" };
  return {
    type: "apiKeys",
    secret: secretRef.name,
    headers: headers.map(lower),
    queries: queryParameters,
    ...(clientHeader === undefined ? {} : { clientHeader: lower(clientHeader) }),
  };
}

function readBasic({ secretRef, userHeader }: BasicAuthSettings): Reading {
  const wrong = wrongSetName(userHeader === undefined ? [] : [userHeader]);
  if (wrong !== undefined) return wrong;
  return {
    type: "basicAuth",
    secret: secretRef.name,
    ...(userHeader === undefined ? {} : { userHeader: lower(userHeader) }),
  };
}

const LONGEST_TIMEOUT_MS = 30_000;
/** Nothing that a service could read as something else than the path. */
const PATH = /^\/[-A-Za-z0-9._~!$&'()*+,;=:@%/]*$/;

function readExternal(written: ExternalAuthSettings): Reading {
  const { backendRef, protocol = "HTTP", path = "", pathType = "Prefix", requestHeaders } = written;
  const { responseHeaders, clientHeaders, refusalHeaders = REFUSAL_HEADERS, timeout, forwardBody } = written;
  const wrong =
    wrongName([...(requestHeaders ?? []), ...(clientHeaders ?? []), ...refusalHeaders]) ??
    wrongSetName(responseHeaders ?? []);
  if (wrong !== undefined) return wrong;
  const timeoutMs = timeout === undefined ? AUTHORIZATION_TIMEOUT_MS : milliseconds(timeout);
  if (!(timeoutMs >= 1 && timeoutMs <= LONGEST_TIMEOUT_MS))
    return { problem: `timeout ${timeout} is not between 1ms and 30s` };
  if (protocol !== "HTTP" && protocol !== "GRPC")
    return { problem: `protocol ${JSON.stringify(protocol)} is not known` };
  const maxBodyBytes = forwardBody?.maxSize;
  if (maxBodyBytes !== undefined && !isBodySize(maxBodyBytes))
    return { problem: `forwardBody.maxSize is not between 1 and ${LARGEST_FORWARDED_BODY}` };
  if (maxBodyBytes !== undefined && pathType === "Exact")
    return { problem: "a body cannot be forwarded with a GET of an exact path" };
  if (pathType !== "Prefix" && pathType !== "Exact")
    return { problem: `pathType ${JSON.stringify(pathType)} is not known` };
  if ((path !== "" || pathType === "Exact") && !PATH.test(path)) return { problem: "path is not a path" };
  return {
    type: "externalAuth",
    service: backendRef,
    path: { type: pathType === "Exact" ? "exact" : "prefix", value: path },
    ...(requestHeaders === undefined ? {} : { requestHeaders: requestHeaders.map(lower) }),
    ...(protocol === "GRPC" ? { protocol: "grpc" } : {}),
    ...(maxBodyBytes === undefined ? {} : { maxBodyBytes }),
    ...(responseHeaders === undefined && protocol === "GRPC"
      ? {}
      : { responseHeaders: (responseHeaders ?? []).map(lower) }),
    ...(clientHeaders === undefined ? {} : { clientHeaders: clientHeaders.map(lower) }),
    refusalHeaders: refusalHeaders.map(lower),
    timeoutMs,
  };
}

function isBodySize(bytes: number): boolean {
  return Number.isInteger(bytes) && bytes >= 1 && bytes <= LARGEST_FORWARDED_BODY;
}

function lower(name: string): string {
  return name.toLowerCase();
}

/** What references are looked up in. */
export interface AuthenticationSources {
  readonly inputs: Inputs;
  readonly grants: Grants;
  readonly endpoints: ServiceEndpoints;
}

export interface ResolvedCheck {
  readonly check: AuthenticationCheck;
  /** The Service that is asked. */
  readonly target?: BackendTarget;
}

/** `namespace`: the policy's. */
export function resolveCheck(
  written: ReferringCheck,
  { gateway, namespace }: { readonly gateway: Key; readonly namespace: string },
  lookup: Lookup,
  sources: AuthenticationSources,
): ResolvedCheck | { readonly failure: Failure } {
  switch (written.type) {
    case "externalAuth": {
      const { service, ...check } = written;
      const resolved = resolveBackend(service, fromPolicy(namespace), lookup, sources);
      if ("failure" in resolved) return resolved;
      const { target } = resolved;
      return { check: { ...check, backend: backendId(gateway, target) }, target };
    }
    case "basicAuth": {
      const { secret, ...check } = written;
      const read = readSecret(secret, namespace, lookup, sources, readHtpasswd);
      return "failure" in read ? read : { check: { ...check, users: read.credentials } };
    }
    case "apiKeys": {
      const { secret, ...check } = written;
      const read = readSecret(secret, namespace, lookup, sources, readApiKeys);
      return "failure" in read ? read : { check: { ...check, keys: read.credentials } };
    }
    case "jwt":
      return resolveJwt(written, namespace, lookup, sources);
  }
}

export function hasReferences(check: ReferringCheck): boolean {
  return check.type !== "jwt" || check.issuers.some(({ keys }) => keys.type === "configMap");
}

function fromPolicy(namespace: string): { group: string; kind: string; namespace: string } {
  return { group: GROUP_OF_KIND.TrafficPolicy, kind: "TrafficPolicy", namespace };
}

function readSecret(
  name: string,
  namespace: string,
  lookup: Lookup,
  { inputs }: AuthenticationSources,
  read: typeof readHtpasswd,
): Extract<ReturnType<typeof readHtpasswd>, { credentials: unknown }> | { readonly failure: Failure } {
  const secret = lookup.get(inputs.secrets, keyFor("Secret", namespace, name));
  if (secret === undefined) return invalidSecret(`Secret ${name} does not exist`);
  const reading = read(secret.data ?? {});
  return "problem" in reading ? invalidSecret(`Secret ${name} cannot be used: ${reading.problem}`) : reading;
}

function invalidSecret(message: string): { readonly failure: Failure } {
  return { failure: { reason: "InvalidSecretRef", message } };
}
