/** API keys, in a header field or a query parameter. */
import { createHash } from "node:crypto";
import type { ApiKeyCheck } from "../../plan/authentication.ts";
import { type AuthenticationRequest, allow, type Decision, unauthenticated } from "./foundation/decision.ts";

const CHALLENGE = "ApiKey";
/** RFC 6750, 2.1; a key may stand there alone, too. */
const SCHEME = /^bearer +/i;

/** Checks are immutable. Digests take the same time to find, however much of a key is right. */
const clients: WeakMap<ApiKeyCheck, ReadonlyMap<string, string>> = new WeakMap();

export function checkApiKey(check: ApiKeyCheck, request: AuthenticationRequest): Decision {
  const given = keysOf(check, request);
  const [key] = given;
  const client = key === undefined || given.length > 1 ? undefined : clientsOf(check).get(digest(key));
  if (client === undefined) return unauthenticated(CHALLENGE);
  const set = check.clientHeader === undefined ? [] : [[check.clientHeader, client] as const];
  return allow(set, { hiddenHeaders: check.headers, hiddenQueries: check.queries });
}

/** All that the request has at the places of a key. */
function keysOf(
  { headers: names, queries }: ApiKeyCheck,
  { headers, query }: AuthenticationRequest,
): readonly string[] {
  const inHeaders = names.flatMap((name) => {
    const value = headers.get(name);
    if (value === undefined) return [];
    return [name === "authorization" ? value.replace(SCHEME, "") : value];
  });
  const parameters = new URLSearchParams(query);
  return [...inHeaders, ...queries.flatMap((name) => parameters.getAll(name))];
}

function clientsOf(check: ApiKeyCheck): ReadonlyMap<string, string> {
  let known = clients.get(check);
  if (known === undefined) {
    const lines = check.keys
      .reveal()
      .split("\n")
      .filter((line) => /:./.test(line));
    known = new Map(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [digest(line.slice(colon + 1)), line.slice(0, colon)] as const;
      }),
    );
    clients.set(check, known);
  }
  return known;
}

function digest(key: string): string {
  return createHash("sha256").update(key).digest("base64");
}
