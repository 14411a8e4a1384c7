/** Routes (envoy.config.route.v3), cut down to what is sent. */

import * as proto from "../wire/proto.ts";
import {
  type EncodedField,
  type EnumValue,
  enumValue,
  explicitText,
  flag,
  type Message,
  map,
  message,
  nested,
  nestedEach,
  text,
  texts,
  uint,
} from "../wire/protobuf.ts";
import {
  any,
  boolValue,
  duration,
  exactMatcher,
  fraction,
  inlineString,
  regex,
  regexMatcher,
  struct,
  substitution,
  uint32Value,
} from "./core.ts";

export interface RouteMatchShape {
  readonly path: { readonly type: "any" | "prefix" | "elements" | "exact" | "regex"; readonly value: string };
  readonly headers: readonly Message<proto.HeaderMatcher>[];
  readonly query: readonly Message<proto.QueryParameterMatcher>[];
  /** Out of a million; absent: all. */
  readonly share?: number;
}

export function routeMatch({ path, headers, query, share }: RouteMatchShape): Message<proto.RouteMatch> {
  return message(
    pathField(path),
    nestedEach(proto.RouteMatch.headers, headers),
    nestedEach(proto.RouteMatch.queryParameters, query),
    share === undefined ? undefined : nested(proto.RouteMatch.runtimeFraction, fraction(share)),
  );
}

function pathField({ type, value }: RouteMatchShape["path"]): EncodedField<proto.RouteMatch> {
  switch (type) {
    case "any":
      return explicitText(proto.RouteMatch.prefix, "");
    case "prefix":
      return text(proto.RouteMatch.prefix, value);
    case "elements":
      return text(proto.RouteMatch.pathSeparatedPrefix, value);
    case "exact":
      return text(proto.RouteMatch.path, value);
    case "regex":
      return nested(proto.RouteMatch.safeRegex, regex(value));
  }
}

export interface ValueMatchShape {
  readonly name: string;
  readonly type: "exact" | "regex";
  readonly value: string;
  readonly invert?: boolean;
}

export function headerMatch({ name, type, value, invert }: ValueMatchShape): Message<proto.HeaderMatcher> {
  const matcher = type === "exact" ? exactMatcher(value) : regexMatcher(value);
  return message(
    text(proto.HeaderMatcher.name, name),
    flag(proto.HeaderMatcher.invertMatch, invert),
    nested(proto.HeaderMatcher.stringMatch, matcher),
  );
}

export function headerPresent(name: string): Message<proto.HeaderMatcher> {
  return message(text(proto.HeaderMatcher.name, name), flag(proto.HeaderMatcher.presentMatch, true));
}

export function queryMatch({ name, type, value }: ValueMatchShape): Message<proto.QueryParameterMatcher> {
  const matcher = type === "exact" ? exactMatcher(value) : regexMatcher(value);
  return message(
    text(proto.QueryParameterMatcher.name, name),
    nested(proto.QueryParameterMatcher.stringMatch, matcher),
  );
}

export interface RouteShape {
  readonly name: string;
  readonly match: Message<proto.RouteMatch>;
  readonly action: RouteActionShape;
  readonly requestHeaders?: HeaderChanges | undefined;
  readonly responseHeaders?: HeaderChanges | undefined;
  readonly perFilter?: FilterConfigs;
  readonly metadata?: Message<proto.Metadata> | undefined;
}

/** By the names of filters. */
export type FilterConfigs = readonly (readonly [name: string, config: Message<proto.Any>])[];

export interface HeaderChanges {
  readonly options: readonly Message<proto.HeaderValueOption>[];
  readonly remove: readonly string[];
}

export type RouteActionShape =
  | { readonly type: "forward"; readonly message: Message<proto.RouteAction> }
  | { readonly type: "redirect"; readonly message: Message<proto.RedirectAction> }
  | { readonly type: "respond"; readonly status: number; readonly text?: string };

export function route(shape: RouteShape): Message<proto.Route> {
  const { action } = shape;
  return message(
    nested(proto.Route.match, shape.match),
    action.type === "forward" ? nested(proto.Route.route, action.message) : undefined,
    action.type === "redirect" ? nested(proto.Route.redirect, action.message) : undefined,
    nested(proto.Route.metadata, shape.metadata),
    action.type === "respond" ? nested(proto.Route.directResponse, directResponse(action)) : undefined,
    nestedEach(proto.Route.requestHeadersToAdd, shape.requestHeaders?.options ?? []),
    nestedEach(proto.Route.responseHeadersToAdd, shape.responseHeaders?.options ?? []),
    texts(proto.Route.responseHeadersToRemove, shape.responseHeaders?.remove ?? []),
    texts(proto.Route.requestHeadersToRemove, shape.requestHeaders?.remove ?? []),
    map(proto.Route.typedPerFilterConfig, shape.perFilter ?? []),
    text(proto.Route.name, shape.name),
  );
}

function directResponse({
  status,
  text: body,
}: Extract<RouteActionShape, { type: "respond" }>): Message<proto.DirectResponseAction> {
  return message(
    uint(proto.DirectResponseAction.status, status),
    body === undefined ? undefined : nested(proto.DirectResponseAction.body, inlineString(body)),
  );
}

export interface ForwardShape {
  readonly cluster: string;
  readonly timeoutMs: number;
  /**
   * Of a stream on which nothing happens, and of a client that does not take the end of an answer.
   * Absent: the listener's.
   */
  readonly idleTimeouts?: { readonly streamMs: number; readonly flushMs: number } | undefined;
  readonly hostRewrite?: string | undefined;
  readonly pathRewrite?: { readonly pattern: string; readonly replacement: string } | undefined;
  readonly retry?: Message<proto.RetryPolicy> | undefined;
  readonly mirrors: readonly Message<proto.RequestMirrorPolicy>[];
}

export function routeAction(shape: ForwardShape): Message<proto.RouteAction> {
  const { pathRewrite } = shape;
  return message(
    text(proto.RouteAction.cluster, shape.cluster),
    text(proto.RouteAction.hostRewriteLiteral, shape.hostRewrite),
    duration(proto.RouteAction.timeout, shape.timeoutMs),
    nested(proto.RouteAction.retryPolicy, shape.retry),
    duration(proto.RouteAction.idleTimeout, shape.idleTimeouts?.streamMs),
    nestedEach(proto.RouteAction.requestMirrorPolicies, shape.mirrors),
    pathRewrite === undefined
      ? undefined
      : nested(proto.RouteAction.regexRewrite, substitution(pathRewrite.pattern, pathRewrite.replacement)),
    duration(proto.RouteAction.flushTimeout, shape.idleTimeouts?.flushMs),
  );
}

export function mirrorPolicy(cluster: string, share: number): Message<proto.RequestMirrorPolicy> {
  return message(
    text(proto.RequestMirrorPolicy.cluster, cluster),
    nested(proto.RequestMirrorPolicy.runtimeFraction, fraction(share)),
    flag(proto.RequestMirrorPolicy.disableShadowHostSuffixAppend, true),
  );
}

export interface RetryShape {
  readonly on: string;
  readonly retries: number;
  readonly perTryTimeoutMs?: number | undefined;
  readonly codes: readonly number[];
  readonly backoff?: { readonly firstMs: number; readonly longestMs: number };
}

export function retryPolicy(shape: RetryShape): Message<proto.RetryPolicy> {
  const previousHosts = message(
    text(proto.RetryHostPredicate.name, "envoy.retry_host_predicates.previous_hosts"),
    nested(
      proto.RetryHostPredicate.typedConfig,
      any("envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate", message()),
    ),
  );
  return message(
    text(proto.RetryPolicy.retryOn, shape.on),
    uint32Value(proto.RetryPolicy.numRetries, shape.retries),
    duration(proto.RetryPolicy.perTryTimeout, shape.perTryTimeoutMs),
    nested(proto.RetryPolicy.retryHostPredicate, previousHosts),
    uint(proto.RetryPolicy.hostSelectionRetryMaxAttempts, 5),
    shape.codes.map((code) => uint(proto.RetryPolicy.retriableStatusCodes, code)),
    shape.backoff === undefined
      ? undefined
      : nested(
          proto.RetryPolicy.retryBackOff,
          message(
            duration(proto.RetryBackOff.baseInterval, shape.backoff.firstMs),
            duration(proto.RetryBackOff.maxInterval, shape.backoff.longestMs),
          ),
        ),
  );
}

const redirectCodes: ReadonlyMap<number, EnumValue<proto.RedirectResponseCode>> = new Map([
  [301, proto.RedirectResponseCode.MOVED_PERMANENTLY],
  [302, proto.RedirectResponseCode.FOUND],
  [303, proto.RedirectResponseCode.SEE_OTHER],
  [307, proto.RedirectResponseCode.TEMPORARY_REDIRECT],
  [308, proto.RedirectResponseCode.PERMANENT_REDIRECT],
]);

export interface RedirectShape {
  readonly scheme?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?:
    | { readonly full: string }
    | { readonly pattern: string; readonly replacement: string }
    | undefined;
  readonly status: number;
}

/** Undefined: a status that Envoy has no redirect for. */
export function redirectAction({
  scheme,
  host,
  port,
  path,
  status,
}: RedirectShape): Message<proto.RedirectAction> | undefined {
  const code = redirectCodes.get(status);
  if (code === undefined) return undefined;
  return message(
    text(proto.RedirectAction.hostRedirect, host),
    path !== undefined && "full" in path ? text(proto.RedirectAction.pathRedirect, path.full) : undefined,
    enumValue(proto.RedirectAction.responseCode, code),
    text(proto.RedirectAction.schemeRedirect, scheme),
    uint(proto.RedirectAction.portRedirect, port),
    path !== undefined && "pattern" in path
      ? nested(proto.RedirectAction.regexRewrite, substitution(path.pattern, path.replacement))
      : undefined,
  );
}

/** Keeps a filter of the connection manager away from a request. */
export function filterOff(): Message<proto.Any> {
  return any("envoy.config.route.v3.FilterConfig", message(flag(proto.FilterConfig.disabled, true)));
}

/** A configuration of its own switches a filter on again below a level that has it off. */
export function luaOn(): Message<proto.Any> {
  const config = message(nested(proto.LuaPerRoute.filterContext, struct({ on: "1" })));
  return any("envoy.extensions.filters.http.lua.v3.LuaPerRoute", config);
}

export interface ScopeShape {
  readonly name: string;
  readonly routes: readonly Message<proto.Route>[];
  readonly retry: Message<proto.RetryPolicy>;
  /** Of a body, kept for a retry. */
  readonly replayBytes: number;
  readonly removeHeaders: readonly string[];
  readonly perFilter: FilterConfigs;
}

/** One virtual host for every name: which scope a request is in has been decided by its key. */
export function scopedRoutes(shape: ScopeShape): Message<proto.ScopedRouteConfiguration> {
  const host = message(
    text(proto.VirtualHost.name, shape.name),
    texts(proto.VirtualHost.domains, ["*"]),
    nestedEach(proto.VirtualHost.routes, shape.routes),
    nested(proto.VirtualHost.retryPolicy, shape.retry),
    nested(
      proto.VirtualHost.requestBodyBufferLimit,
      message(uint(proto.UInt64Value.value, shape.replayBytes)),
    ),
  );
  const configuration = message(
    text(proto.RouteConfiguration.name, shape.name),
    nested(proto.RouteConfiguration.virtualHosts, host),
    boolValue(proto.RouteConfiguration.validateClusters, false),
    texts(proto.RouteConfiguration.requestHeadersToRemove, shape.removeHeaders),
    map(proto.RouteConfiguration.typedPerFilterConfig, shape.perFilter),
  );
  const fragment = message(text(proto.ScopeKeyFragment.stringKey, shape.name));
  return message(
    text(proto.ScopedRouteConfiguration.name, shape.name),
    nested(proto.ScopedRouteConfiguration.key, message(nested(proto.ScopeKey.fragments, fragment))),
    nested(proto.ScopedRouteConfiguration.routeConfiguration, configuration),
  );
}

export function luaFilter(code: string): Message<proto.Lua> {
  return message(nested(proto.Lua.defaultSourceCode, inlineString(code)));
}
