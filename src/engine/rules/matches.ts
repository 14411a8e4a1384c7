/** Matches of HTTPRoutes and GRPCRoutes in the plan's words. */
import { RE2JS } from "re2js";
import type { RouteValueMatch as ApiValueMatch, GrpcRouteMatch, HttpRouteMatch } from "../../api/routes.ts";
import type { PathMatch, RequestMatch, ValueMatch } from "../../plan/rule.ts";
import { Unservable } from "./compiled.ts";
import { checkedPattern } from "./expressions.ts";
import { checkedHeaderName, checkedMatchPath, checkedQuery } from "./wire-text.ts";

export function compileHttpMatch(match: HttpRouteMatch): RequestMatch | Unservable {
  const path = compilePath(match.path ?? { type: "PathPrefix", value: "/" });
  if (path instanceof Unservable) return path;
  const headers = compileValues(match.headers, "header");
  if (headers instanceof Unservable) return headers;
  const query = compileValues(match.queryParams, "query parameter");
  if (query instanceof Unservable) return query;
  return { path, ...(match.method === undefined ? {} : { method: match.method }), headers, query };
}

/** A gRPC method is a path: /service/method. */
export function compileGrpcMatch(match: GrpcRouteMatch): RequestMatch | Unservable {
  const headers = compileValues(match.headers, "header");
  if (headers instanceof Unservable) return headers;
  const path = grpcPath(match.method);
  if (path instanceof Unservable) return path;
  return { ...(path === undefined ? {} : { path }), headers, query: [] };
}

function compilePath({ type, value }: NonNullable<HttpRouteMatch["path"]>): PathMatch | Unservable {
  if (type === "RegularExpression") return checkedPattern(value, "path") ?? { type: "regex", value };
  return checkedMatchPath(value) ?? { type: type === "Exact" ? "exact" : "prefix", value };
}

function grpcPath(method: GrpcRouteMatch["method"]): PathMatch | undefined | Unservable {
  if (method === undefined || (!method.service && !method.method)) return undefined;
  const { service, method: name } = method;
  if (method.type === "RegularExpression") {
    const value = `/${service || "[^/]+"}/${name || "[^/]+"}`;
    return checkedPattern(value, "method") ?? { type: "regex", value };
  }
  const problem = checkedMatchPath(`/${service || "service"}/${name || "method"}`);
  if (problem !== undefined) return problem;
  if (service && name) return { type: "exact", value: `/${service}/${name}` };
  if (service) return { type: "prefix", value: `/${service}` };
  return { type: "regex", value: `/[^/]+/${RE2JS.quote(name ?? "")}` };
}

const NO_VALUES: readonly ValueMatch[] = [];

/**
 * Of several entries with one name only the first counts (HTTPRouteMatch.headers, .queryParams).
 */
function compileValues(
  values: readonly ApiValueMatch[] | undefined,
  what: string,
): readonly ValueMatch[] | Unservable {
  if (values === undefined || values.length === 0) return NO_VALUES;
  const compiled: ValueMatch[] = [];
  for (const { type, name, value } of values) {
    const folded = what === "header" ? name.toLowerCase() : name;
    if (compiled.some((other) => other.name === folded)) continue;
    const problem =
      (what === "header" ? checkedHeaderName(name) : checkedQuery(name, value)) ??
      (type === "RegularExpression" ? checkedPattern(value, `${what} ${name}`) : undefined);
    if (problem !== undefined) return problem;
    compiled.push({ type: type === "Exact" ? "exact" : "regex", name: folded, value });
  }
  return compiled;
}
