/**
 * Sessions that stay on their endpoint (GEP-1619). The client keeps a token that stands for an
 * endpoint. A token is looked up among the endpoints that the backend has now: whatever a client
 * makes up, it reaches one of these or is a new session.
 */
import { createHash } from "node:crypto";
import type { BackendItem, Endpoint } from "../../../plan/backend.ts";
import type { PersistencePolicy } from "../../../plan/rule.ts";
import { type BalancedRequest, cookieOf } from "./endpoint-order.ts";

const known: WeakMap<readonly Endpoint[], ReadonlyMap<string, Endpoint>> = new WeakMap();

/** The endpoint of the request's session; undefined: it has none that still holds. */
export function sessionEndpoint(
  { persistence, endpoints }: Pick<BackendItem, "persistence" | "endpoints">,
  request: BalancedRequest,
): Endpoint | undefined {
  if (persistence === undefined) return undefined;
  const { type, name } = persistence;
  const said = type === "header" ? request.header(name) : cookieOf(request.header("cookie"), name);
  const [token = "", until] = said?.replaceAll('"', "").split(".") ?? [];
  if (persistence.permanent && !(Number(until) * 1000 > Date.now())) return undefined;
  return tokensOf(endpoints).get(token);
}

/** The field of an answer that begins a session. */
export function sessionField(
  { type, name, permanent, absoluteTimeoutMs = 0 }: PersistencePolicy,
  endpoint: Endpoint,
  isSecure: boolean,
): readonly [name: string, value: string] {
  const token = tokenOf(endpoint);
  if (type === "header") return [name, token];
  const seconds = Math.ceil(absoluteTimeoutMs / 1000);
  const until = permanent ? `.${Math.ceil(Date.now() / 1000) + seconds}` : "";
  const lifetime = permanent ? `; Max-Age=${seconds}` : "";
  const secure = isSecure ? "; Secure" : "";
  return ["set-cookie", `${name}="${token}${until}"${lifetime}; Path=/; HttpOnly${secure}`];
}

function tokensOf(endpoints: readonly Endpoint[]): ReadonlyMap<string, Endpoint> {
  const present = known.get(endpoints);
  if (present !== undefined) return present;
  const tokens = new Map(endpoints.map((endpoint) => [tokenOf(endpoint), endpoint]));
  known.set(endpoints, tokens);
  return tokens;
}

/** The same in all threads and pods, and no address that clients have a use for. */
function tokenOf({ address, port }: Endpoint): string {
  return createHash("sha256").update(`${address} ${port}`).digest("base64url").slice(0, 22);
}
