/**
 * The filter ExternalAuth of an HTTPRoute's rule (GEP-1494) as a guard of the rule.
 *
 * - Over HTTP only 200 lets a request pass (HTTPExternalAuthFilter.protocol).
 * - `http.allowedHeaders` come besides Host, Method, Path, Content-Length and Authorization;
 *   without `grpc.allowedHeaders` the service gets all fields.
 * - Without `http.allowedResponseHeaders` backends get all fields of the answer.
 * - A body longer than `forwardBody.maxSize` is refused, as HTTPExternalAuthFilter.forwardBody
 *   says. ForwardBodyConfig.maxSize would have it cut off; but then a service would judge a body
 *   that the backend does not get.
 * - A reference that does not resolve leaves the guard without an item: the rule answers 500.
 */
import type { RouteFilter } from "../../api/routes.ts";
import type { ExternalAuthCheck } from "../../plan/authentication.ts";
import { wrongName, wrongSetName } from "../foundation/field-names.ts";
import { type Resolve, Unservable } from "./compiled.ts";
import { checkedNumber, checkedPath } from "./wire-text.ts";

/** Fields of a refusal that clients get, unless somebody says otherwise. */
export const REFUSAL_HEADERS: readonly string[] = [
  "cache-control",
  "content-type",
  "location",
  "set-cookie",
  "www-authenticate",
];
export const AUTHORIZATION_TIMEOUT_MS = 5_000;
/** A body that a service gets waits in memory for its word. */
export const LARGEST_FORWARDED_BODY: number = 1024 * 1024;

/** `check` is absent if the reference does not resolve. */
export interface FilterGuard {
  readonly check?: ExternalAuthCheck;
}

export function readExternalAuthFilter(
  filter: NonNullable<RouteFilter["externalAuth"]>,
  resolve: Resolve,
): FilterGuard | Unservable {
  const { protocol, http = {}, grpc = {}, forwardBody = {} } = filter;
  const { path = "", allowedHeaders = [], allowedResponseHeaders = [] } = http;
  if (protocol !== "HTTP" && protocol !== "GRPC") return unfit(`protocol ${JSON.stringify(protocol)}`);
  const names = protocol === "HTTP" ? allowedHeaders : (grpc.allowedHeaders ?? []);
  const wrong = wrongName(names) ?? wrongSetName(allowedResponseHeaders);
  if (wrong !== undefined) return unfit(wrong.problem);
  const problem =
    checkedPath(path, "the path for authorization") ??
    checkedNumber(forwardBody.maxSize, [0, LARGEST_FORWARDED_BODY], "forwardBody.maxSize");
  if (problem !== undefined) return problem;
  const backend = resolve(filter.backendRef);
  if (backend === undefined) return {};
  const isGrpc = protocol === "GRPC";
  return {
    check: {
      type: "externalAuth",
      backend,
      ...(isGrpc ? { protocol: "grpc" } : {}),
      path: { type: "prefix", value: path === "" || path.startsWith("/") ? path : `/${path}` },
      ...(isGrpc && names.length === 0 ? {} : { requestHeaders: names.map(lower) }),
      ...(allowedResponseHeaders.length === 0 ? {} : { responseHeaders: allowedResponseHeaders.map(lower) }),
      ...(isGrpc ? {} : { onlyOk: true }),
      ...(forwardBody.maxSize ? { maxBodyBytes: forwardBody.maxSize } : {}),
      refusalHeaders: REFUSAL_HEADERS,
      timeoutMs: AUTHORIZATION_TIMEOUT_MS,
    },
  };
}

function unfit(what: string): Unservable {
  return new Unservable("UnsupportedValue", `filter ExternalAuth: ${what}`);
}

function lower(name: string): string {
  return name.toLowerCase();
}
