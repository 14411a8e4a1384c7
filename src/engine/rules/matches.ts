/** Matches of HTTPRoutes and GRPCRoutes in the plan's words. */
import { RE2JS } from "re2js";
import type { ValueMatch as ApiValueMatch, GrpcRouteMatch, HttpRouteMatch } from "../../api/routes.ts";
import type { PathMatch, RequestMatch, ValueMatch } from "../../plan/rule.ts";
import { Unservable } from "./compiled.ts";

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
  if (type === "Exact") return { type: "exact", value };
  if (type === "PathPrefix") return { type: "prefix", value };
  return checkedPattern(value, "path") ?? { type: "regex", value };
}

function grpcPath(method: GrpcRouteMatch["method"]): PathMatch | undefined | Unservable {
  if (method === undefined || (!method.service && !method.method)) return undefined;
  const { service, method: name } = method;
  if (method.type === "RegularExpression") {
    const value = `/${service || "[^/]+"}/${name || "[^/]+"}`;
    return checkedPattern(value, "method") ?? { type: "regex", value };
  }
  if (service && name) return { type: "exact", value: `/${service}/${name}` };
  if (service) return { type: "prefix", value: `/${service}` };
  return { type: "regex", value: `/[^/]+/${RE2JS.quote(name ?? "")}` };
}

const NO_VALUES: readonly ValueMatch[] = [];

/** Of several entries with one name only the first counts (HTTPRouteMatch.headers, .queryParams). */
function compileValues(
  values: readonly ApiValueMatch[] | undefined,
  what: string,
): readonly ValueMatch[] | Unservable {
  if (values === undefined || values.length === 0) return NO_VALUES;
  const compiled: ValueMatch[] = [];
  for (const { type, name, value } of values) {
    const folded = what === "header" ? name.toLowerCase() : name;
    if (compiled.some((other) => other.name === folded)) continue;
    if (type === "RegularExpression") {
      const problem = checkedPattern(value, `${what} ${name}`);
      if (problem !== undefined) return problem;
    }
    compiled.push({ type: type === "Exact" ? "exact" : "regex", name: folded, value });
  }
  return compiled;
}

/**
 * RE2 matches in time proportional to text times program, so a large program would make one tenant's pattern everybody's cost. Repetitions
 * make large programs of short texts: the length alone says little.
 */
const MAX_PATTERN_LENGTH = 1024;
const MAX_PROGRAM_SIZE = 500;

function checkedPattern(pattern: string, what: string): Unservable | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    return new Unservable(
      "UnsupportedValue",
      `the regular expression for ${what} is longer than ${MAX_PATTERN_LENGTH} characters`,
    );
  }
  try {
    const size = RE2JS.compile(pattern).programSize();
    if (size <= MAX_PROGRAM_SIZE) return undefined;
    const message = `the regular expression for ${what} is too large: ${size} instructions, at most ${MAX_PROGRAM_SIZE}; shorten its repetitions`;
    return new Unservable("UnsupportedValue", message);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return new Unservable("UnsupportedValue", `the regular expression for ${what} is not valid RE2: ${why}`);
  }
}
