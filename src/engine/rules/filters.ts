/**
 * Filters of rules and of backendRefs in the plan's words. A filter that the data plane does not
 * serve makes the rule unservable: it is never silently left out.
 */
import type { HeaderModifier, PathModifier, RouteFilter } from "../../api/routes.ts";
import type { Filters, HeaderEdit, Mirror, PathEdit, RedirectAction } from "../../plan/rule.ts";
import { type Resolve, Unservable } from "./compiled.ts";
import { type FilterGuard, readExternalAuthFilter } from "./external-auth.ts";
import {
  checkedHeaderName,
  checkedHeaderValue,
  checkedHostname,
  checkedNumber,
  checkedPath,
} from "./wire-text.ts";

export interface CompiledFilters {
  readonly filters: Filters;
  readonly redirect?: Omit<RedirectAction, "filters">;
  /** A filter that cannot be resolved: requests get 500 rather than an answer without it. */
  readonly broken?: string;
  /** In the order of the filters. */
  readonly guards?: readonly FilterGuard[];
}

export interface FilterContext {
  readonly resolve: Resolve;
  readonly features: ReadonlySet<string>;
  /** Reports a reference of a filter that does not resolve. */
  readonly unresolved: (reason: string, message: string) => void;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Which feature each filter needs, by the names of the conformance suite; filters that are not
 * listed are core.
 */
const FEATURE_OF_FILTER: Readonly<Record<string, string>> = {
  ResponseHeaderModifier: "HTTPRouteResponseHeaderModification",
  RequestMirror: "HTTPRouteRequestMirror",
  CORS: "HTTPRouteCORS",
};

const NO_FILTERS: CompiledFilters = { filters: {} };

export function compileFilters(
  list: readonly RouteFilter[] | undefined,
  context: FilterContext,
): CompiledFilters | Unservable {
  if (list === undefined || list.length === 0) return NO_FILTERS;
  const filters: Mutable<Filters> = {};
  let redirect: CompiledFilters["redirect"];
  let broken: string | undefined;
  const guards: FilterGuard[] = [];
  for (const filter of list) {
    const feature = FEATURE_OF_FILTER[filter.type];
    if (feature !== undefined && !context.features.has(feature)) return unsupported(`filter ${filter.type}`);
    const unfit = checkedText(filter);
    if (unfit !== undefined) return unfit;
    switch (filter.type) {
      case "RequestHeaderModifier":
        filters.requestHeaders = [
          ...(filters.requestHeaders ?? []),
          ...headerEdits(filter.requestHeaderModifier),
        ];
        break;
      case "ResponseHeaderModifier":
        filters.responseHeaders = [
          ...(filters.responseHeaders ?? []),
          ...headerEdits(filter.responseHeaderModifier),
        ];
        break;
      case "RequestRedirect": {
        const { path, ...rest } = filter.requestRedirect ?? { statusCode: 302 };
        redirect = { type: "redirect", ...rest, ...(path === undefined ? {} : { path: pathEdit(path) }) };
        break;
      }
      case "URLRewrite": {
        const { hostname, path } = filter.urlRewrite ?? {};
        filters.rewrite = {
          ...(hostname === undefined ? {} : { hostname }),
          ...(path === undefined ? {} : { path: pathEdit(path) }),
        };
        break;
      }
      case "RequestMirror":
        filters.mirrors = [...(filters.mirrors ?? []), mirror(filter, context.resolve)];
        break;
      case "CORS":
        filters.cors = compiledCors(filter);
        break;
      case "ExternalAuth": {
        if (filter.externalAuth === undefined) return unsupported("filter ExternalAuth without settings");
        const guard = readExternalAuthFilter(filter.externalAuth, context.resolve);
        if (guard instanceof Unservable) return guard;
        guards.push(guard);
        break;
      }
      case "ExtensionRef": {
        const { group = "", kind = "", name = "" } = filter.extensionRef ?? {};
        broken = `extension filter ${group}/${kind} ${name} is not known`;
        context.unresolved("InvalidKind", broken);
        break;
      }
      default:
        return unsupported(`filter ${filter.type}`);
    }
  }
  if (redirect !== undefined && filters.rewrite !== undefined) {
    return new Unservable("IncompatibleFilters", "RequestRedirect and URLRewrite cannot be used in one rule");
  }
  return {
    filters,
    ...(redirect === undefined ? {} : { redirect }),
    ...(broken === undefined ? {} : { broken }),
    ...(guards.length === 0 ? {} : { guards }),
  };
}

/** The first value of a filter that cannot go on the wire. */
function checkedText(filter: RouteFilter): Unservable | undefined {
  const { requestHeaderModifier, responseHeaderModifier, requestRedirect, urlRewrite } = filter;
  return (
    checkedModifier(requestHeaderModifier) ??
    checkedModifier(responseHeaderModifier) ??
    checkedEdit(requestRedirect?.path) ??
    checkedEdit(urlRewrite?.path) ??
    checkedHostname(requestRedirect?.hostname, "the hostname of a redirect") ??
    checkedHostname(urlRewrite?.hostname, "the hostname of a rewrite") ??
    checkedNumber(requestRedirect?.port, [1, 65_535], "the port of a redirect") ??
    checkedShare(filter) ??
    checkedCors(filter)
  );
}

export function checkedModifier(modifier: HeaderModifier | undefined): Unservable | undefined {
  for (const name of modifier?.remove ?? []) {
    const problem = checkedHeaderName(name);
    if (problem !== undefined) return problem;
  }
  for (const { name, value } of [...(modifier?.set ?? []), ...(modifier?.add ?? [])]) {
    const problem = checkedHeaderName(name) ?? checkedHeaderValue(name, value);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function checkedEdit(edit: PathModifier | undefined): Unservable | undefined {
  return checkedPath(edit?.replaceFullPath ?? edit?.replacePrefixMatch, "the path of a filter");
}

const MOST = 2 ** 31 - 1;

function checkedShare({ requestMirror }: RouteFilter): Unservable | undefined {
  return (
    checkedNumber(requestMirror?.percent, [0, 100], "the percentage of a mirror") ??
    checkedNumber(requestMirror?.fraction?.numerator, [0, MOST], "the numerator of a mirror's fraction") ??
    checkedNumber(requestMirror?.fraction?.denominator, [1, MOST], "the denominator of a mirror's fraction")
  );
}

/** All of these are put into headers of the answer. */
export function checkedCors({ cors }: Pick<RouteFilter, "cors">): Unservable | undefined {
  for (const list of [cors?.allowOrigins, cors?.allowMethods, cors?.allowHeaders, cors?.exposeHeaders]) {
    for (const value of list ?? []) {
      const problem = checkedHeaderValue("of a CORS policy", value);
      if (problem !== undefined) return problem;
    }
  }
  return checkedNumber(cors?.maxAge, [1, MOST], "maxAge of a CORS policy");
}

export function unsupported(what: string): Unservable {
  return new Unservable("UnsupportedValue", `${what} is not supported by the data plane`);
}

/** The order within one modifier is set, add, remove. */
export function headerEdits(modifier: HeaderModifier | undefined): HeaderEdit[] {
  return [
    ...(modifier?.set ?? []).map(
      ({ name, value }): HeaderEdit => ({ op: "set", name: name.toLowerCase(), value }),
    ),
    ...(modifier?.add ?? []).map(
      ({ name, value }): HeaderEdit => ({ op: "add", name: name.toLowerCase(), value }),
    ),
    ...(modifier?.remove ?? []).map((name): HeaderEdit => ({ op: "remove", name: name.toLowerCase() })),
  ];
}

function pathEdit(modifier: PathModifier): PathEdit {
  return modifier.type === "ReplaceFullPath"
    ? { type: "full", value: modifier.replaceFullPath ?? "/" }
    : { type: "prefix", value: modifier.replacePrefixMatch ?? "/" };
}

function mirror({ requestMirror }: RouteFilter, resolve: Resolve): Mirror {
  const share = requestMirror?.fraction ?? { numerator: requestMirror?.percent ?? 100, denominator: 100 };
  const backend = requestMirror === undefined ? undefined : resolve(requestMirror.backendRef);
  return {
    ...(backend === undefined ? {} : { backend }),
    numerator: share.numerator,
    denominator: share.denominator,
  };
}

export function compiledCors({ cors }: Pick<RouteFilter, "cors">): NonNullable<Filters["cors"]> {
  return {
    allowOrigins: cors?.allowOrigins ?? [],
    allowCredentials: cors?.allowCredentials ?? false,
    allowMethods: cors?.allowMethods ?? [],
    allowHeaders: cors?.allowHeaders ?? [],
    exposeHeaders: cors?.exposeHeaders ?? [],
    maxAgeSeconds: cors?.maxAge ?? 5,
  };
}
