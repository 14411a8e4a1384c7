/** Routes (envoy.config.route.v3), cut down to what is sent. */

import {
  explicitText,
  type Field,
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
  headerOptions,
  inlineString,
  regex,
  regexMatcher,
  struct,
  substitution,
  uint32Value,
} from "./core.ts";

export interface RouteMatchShape {
  readonly path: { readonly type: "any" | "prefix" | "elements" | "exact" | "regex"; readonly value: string };
  readonly headers: readonly Message[];
  readonly query: readonly Message[];
  /** Out of a million; absent: all. */
  readonly share?: number;
}

export function routeMatch({ path, headers, query, share }: RouteMatchShape): Message {
  return message(
    pathField(path),
    nestedEach(6, headers),
    nestedEach(7, query),
    share === undefined ? undefined : nested(9, fraction(share)),
  );
}

function pathField({ type, value }: RouteMatchShape["path"]): Field {
  switch (type) {
    case "any":
      return explicitText(1, "");
    case "prefix":
      return text(1, value);
    case "elements":
      return text(14, value);
    case "exact":
      return text(2, value);
    case "regex":
      return nested(10, regex(value));
  }
}

export interface ValueMatchShape {
  readonly name: string;
  readonly type: "exact" | "regex";
  readonly value: string;
  readonly invert?: boolean;
}

export function headerMatch({ name, type, value, invert }: ValueMatchShape): Message {
  const matcher = type === "exact" ? exactMatcher(value) : regexMatcher(value);
  return message(text(1, name), flag(8, invert), nested(13, matcher));
}

export function queryMatch({ name, type, value }: ValueMatchShape): Message {
  return message(text(1, name), nested(5, type === "exact" ? exactMatcher(value) : regexMatcher(value)));
}

export interface RouteShape {
  readonly name: string;
  readonly match: Message;
  readonly action: RouteActionShape;
  readonly requestHeaders?: HeaderChanges | undefined;
  readonly responseHeaders?: HeaderChanges | undefined;
  readonly perFilter?: readonly (readonly [name: string, config: Message])[];
  readonly metadata?: Message | undefined;
}

export interface HeaderChanges {
  readonly options: readonly Message[];
  readonly remove: readonly string[];
}

export type RouteActionShape =
  | { readonly type: "forward"; readonly message: Message }
  | { readonly type: "redirect"; readonly message: Message }
  | { readonly type: "respond"; readonly status: number };

export function route(shape: RouteShape): Message {
  const { action } = shape;
  return message(
    nested(1, shape.match),
    action.type === "forward" ? nested(2, action.message) : undefined,
    action.type === "redirect" ? nested(3, action.message) : undefined,
    nested(4, shape.metadata),
    action.type === "respond" ? nested(7, message(uint(1, action.status))) : undefined,
    headerOptions(9, shape.requestHeaders?.options ?? []),
    headerOptions(10, shape.responseHeaders?.options ?? []),
    texts(11, shape.responseHeaders?.remove ?? []),
    texts(12, shape.requestHeaders?.remove ?? []),
    map(13, shape.perFilter ?? []),
    text(14, shape.name),
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
  readonly retry?: Message | undefined;
  readonly mirrors: readonly Message[];
}

export function forward(shape: ForwardShape): Message {
  const { pathRewrite } = shape;
  return message(
    text(1, shape.cluster),
    text(6, shape.hostRewrite),
    duration(8, shape.timeoutMs),
    nested(9, shape.retry),
    duration(24, shape.idleTimeouts?.streamMs),
    nestedEach(30, shape.mirrors),
    pathRewrite === undefined
      ? undefined
      : nested(32, substitution(pathRewrite.pattern, pathRewrite.replacement)),
    duration(42, shape.idleTimeouts?.flushMs),
  );
}

export function mirrorPolicy(cluster: string, share: number): Message {
  return message(text(1, cluster), nested(3, fraction(share)), flag(6, true));
}

export interface RetryShape {
  readonly on: string;
  readonly retries: number;
  readonly perTryTimeoutMs?: number | undefined;
  readonly codes: readonly number[];
  readonly backoff?: { readonly firstMs: number; readonly longestMs: number };
}

export function retryPolicy(shape: RetryShape): Message {
  const previousHosts = message(
    text(1, "envoy.retry_host_predicates.previous_hosts"),
    nested(3, any("envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate", message())),
  );
  return message(
    text(1, shape.on),
    uint32Value(2, shape.retries),
    duration(3, shape.perTryTimeoutMs),
    nested(5, previousHosts),
    uint(6, 5),
    shape.codes.map((code) => uint(7, code)),
    shape.backoff === undefined
      ? undefined
      : nested(8, message(duration(1, shape.backoff.firstMs), duration(2, shape.backoff.longestMs))),
  );
}

const redirectCodes: ReadonlyMap<number, number> = new Map([
  [301, 0],
  [302, 1],
  [303, 2],
  [307, 3],
  [308, 4],
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
export function redirect({ scheme, host, port, path, status }: RedirectShape): Message | undefined {
  const code = redirectCodes.get(status);
  if (code === undefined) return undefined;
  return message(
    text(1, host),
    path !== undefined && "full" in path ? text(2, path.full) : undefined,
    uint(3, code),
    text(7, scheme),
    uint(8, port),
    path !== undefined && "pattern" in path
      ? nested(9, substitution(path.pattern, path.replacement))
      : undefined,
  );
}

/** Keeps a filter of the connection manager away from a request. */
export function filterOff(): Message {
  return any("envoy.config.route.v3.FilterConfig", message(flag(3, true)));
}

/** A configuration of its own switches a filter on again below a level that has it off. */
export function luaOn(): Message {
  return any("envoy.extensions.filters.http.lua.v3.LuaPerRoute", message(nested(4, struct({ on: "1" }))));
}

export interface ScopeShape {
  readonly name: string;
  readonly routes: readonly Message[];
  readonly retry: Message;
  /** Of a body, kept for a retry. */
  readonly replayBytes: number;
  readonly removeHeaders: readonly string[];
  readonly perFilter: readonly (readonly [name: string, config: Message])[];
}

/** One virtual host for every name: which scope a request is in has been decided by its key. */
export function scopedRoutes(shape: ScopeShape): Message {
  const host = message(
    text(1, shape.name),
    texts(2, ["*"]),
    nestedEach(3, shape.routes),
    nested(16, shape.retry),
    nested(25, message(uint(1, shape.replayBytes))),
  );
  const configuration = message(
    text(1, shape.name),
    nested(2, host),
    boolValue(7, false),
    texts(8, shape.removeHeaders),
    map(16, shape.perFilter),
  );
  return message(
    text(1, shape.name),
    nested(3, message(nested(1, message(text(1, shape.name))))),
    nested(5, configuration),
  );
}

export function luaFilter(code: string): Message {
  return message(nested(3, inlineString(code)));
}
