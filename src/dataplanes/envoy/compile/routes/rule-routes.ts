/**
 * One rule of the plan as routes of Envoy.
 *
 * A rule with several backends stands once per backend: each of these routes takes requests up to
 * its share of a number that Envoy draws once per request. So every backend has its own filters and
 * rewrites, and a share that cannot be served is a route that answers 500.
 */

import { prefixElements } from "../../../../matching/request-match.ts";
import type { BackendItem } from "../../../../plan/backend.ts";
import { isWildcard } from "../../../../plan/hostname.ts";
import type { ItemId, PortItem } from "../../../../plan/plan.ts";
import type {
  Filters,
  ForwardAction,
  HeaderEdit,
  Mirror,
  RedirectAction,
  RequestMatch,
  Rule,
  WeightedBackend,
} from "../../../../plan/rule.ts";
import { headerOption, MILLION } from "../../messages/core.ts";
import { CORS_FILTER } from "../../messages/http-filters.ts";
import { STREAM_IDLE_MS } from "../../messages/http-manager.ts";
import {
  type ForwardShape,
  forward,
  headerMatch,
  mirrorPolicy,
  type RouteActionShape,
  type RouteShape,
  redirect,
  route,
  routeMatch,
} from "../../messages/route.ts";
import type { Message } from "../../wire/protobuf.ts";
import { routeCleaning } from "../field-cleaning.ts";
import { CLEANING_FILTER, clusterName, listenerWord, unguardedName, type Variant } from "../names.ts";
import { corsPolicy } from "./cors.ts";
import type { RouteGuards, ScopeGuards } from "./guards.ts";
import { headerChanges } from "./header-edits.ts";
import { fullPath, pathSubstitution } from "./path-edits.ts";
import { ruleRetry } from "./retries.ts";
import { canMatch, headersWritable, hostWritable, isStatus } from "./servable.ts";
import { headerValueMatch, queryValueMatch } from "./value-matches.ts";

export interface RuleContext {
  readonly port: PortItem;
  /** The pattern of the scope: the host of a redirect that names none, if it is exact. */
  readonly scope: string;
  /** The pattern of the host that the rule belongs to; never narrower than the scope's. */
  readonly hostname: string;
  readonly listener: ItemId;
  readonly backend: (id: ItemId) => BackendItem | undefined;
  /** Told of every cluster that a route refers to. */
  readonly uses: (backend: ItemId, variant: Variant) => void;
  /** Told of every backend that decides what a route looks like. */
  readonly dependsOn: (backend: ItemId) => void;
  readonly guards: ScopeGuards;
}

export function ruleRoutes(rule: Rule, context: RuleContext): readonly Message[] {
  const { action, match } = rule;
  if (!canMatch(match)) return [];
  const name = routeName(rule, context);
  const guards = context.guards.of(rule);
  if (guards === undefined)
    return [
      guarded(context.guards.none, { name: unguardedName(name), match: matchOf(match), action: BROKEN }),
    ];
  const whole = (shape: RouteActionShape, more: Partial<RouteShape> = {}): Message =>
    guarded(guards, { name, match: matchOf(match), action: shape, ...more });
  if (guards.spentSeconds !== undefined) {
    const retry = headerOption("retry-after", String(guards.spentSeconds), "overwrite");
    return [whole(SPENT, { responseHeaders: { options: [retry], remove: [] } })];
  }
  switch (action.type) {
    case "respond":
      return [whole(isStatus(action.status) ? { type: "respond", status: action.status } : BROKEN)];
    case "redirect": {
      const shape = redirectOf(action, match, context);
      if (shape === undefined || !headersWritable(action.filters.responseHeaders)) return [whole(BROKEN)];
      const responseHeaders = headerChanges(action.filters.responseHeaders).changes;
      return [
        whole(
          { type: "redirect", message: shape },
          { responseHeaders, perFilter: perFilter(action.filters) },
        ),
      ];
    }
    case "forward":
      // Authorisation by another service is not served here, and what it protects must not be open.
      if (action.filters.externalAuth !== undefined) return [whole(BROKEN)];
      return shares(action).map(({ backend, upTo }) =>
        guarded(guards, shareRoute({ rule, action, backend, name, match: matchOf(match, upTo) }, context)),
      );
  }
}

/** A route with what its guards need; whatever it answers, they come first. */
function guarded({ perFilter, metadata }: RouteGuards, shape: RouteShape): Message {
  return route({ ...shape, perFilter: [...perFilter, ...(shape.perFilter ?? [])], metadata });
}

const SPENT: RouteActionShape = { type: "respond", status: 429 };
const BROKEN: RouteActionShape = { type: "respond", status: 500 };

interface Share {
  /** Undefined: nothing has any weight. */
  readonly backend: WeightedBackend | undefined;
  readonly upTo: number | undefined;
}

function shares(action: ForwardAction): readonly Share[] {
  const chosen = action.backends.filter(({ weight }) => weight > 0);
  const sum = chosen.reduce((total, { weight }) => total + weight, 0);
  if (sum === 0) return [{ backend: undefined, upTo: undefined }];
  let until = 0;
  return chosen.map((backend, index): Share => {
    until += backend.weight;
    const last = index === chosen.length - 1;
    return { backend, upTo: last ? undefined : Math.round((until * MILLION) / sum) };
  });
}

interface ShareParts {
  readonly rule: Rule;
  readonly action: ForwardAction;
  readonly backend: WeightedBackend | undefined;
  readonly name: string;
  readonly match: Message;
}

function shareRoute({ rule, action, backend, name, match }: ShareParts, context: RuleContext): RouteShape {
  const id = backend?.backend;
  if (id !== undefined) context.dependsOn(id);
  if (backend === undefined || id === undefined || context.backend(id)?.refused !== undefined) {
    return { name, match, action: BROKEN };
  }
  const broken = unservable(action.filters, backend.filters);
  if (broken !== undefined) return { name, match, action: { type: "respond", status: broken } };
  const variant = rule.origin.kind === "GRPCRoute" ? "h2" : "plain";
  context.uses(id, variant);
  const { filters, timeouts } = action;
  const retry = ruleRetry(action);
  const request = headerChanges(filters.requestHeaders, backend.filters.requestHeaders);
  const response = headerChanges(
    filters.responseHeaders,
    backend.filters.responseHeaders,
    corsEdits({ ...filters, ...backend.filters }),
  );
  const cleaning = routeCleaning({ request: request.decided, response: response.decided });
  const pathEdit = backend.filters.rewrite?.path ?? filters.rewrite?.path;
  const message = forward({
    cluster: clusterName(context.port.gateway, id, variant),
    timeoutMs: timeouts.requestMs ?? 0,
    idleTimeouts: idleTimeouts(timeouts),
    hostRewrite: backend.filters.rewrite?.hostname ?? filters.rewrite?.hostname ?? request.host,
    pathRewrite: pathEdit === undefined ? undefined : pathSubstitution(pathEdit, rule.match.path),
    retry: retry.policy,
    mirrors: [...(filters.mirrors ?? []), ...(backend.filters.mirrors ?? [])].flatMap((mirror) =>
      mirrorOf(mirror, context),
    ),
  });
  return {
    name,
    match,
    action: { type: "forward", message },
    requestHeaders: {
      options: request.changes?.options ?? [],
      remove: [...(request.changes?.remove ?? []), ...retry.without],
    },
    responseHeaders: response.changes,
    perFilter: [
      ...perFilter({ ...filters, ...backend.filters }),
      ...(cleaning === undefined ? [] : [[CLEANING_FILTER, cleaning] as const]),
    ],
  };
}

/**
 * A route's own timeouts decide, not the listener's for streams on which nothing happens: that is
 * stretched where it would come first.
 */
export function idleTimeouts(timeouts: ForwardAction["timeouts"]): ForwardShape["idleTimeouts"] {
  const { requestMs = 0, backendRequestMs = 0, unbounded } = timeouts;
  const longest = Math.max(requestMs, backendRequestMs, unbounded === true ? UNBOUNDED_IDLE_MS : 0);
  if (longest < STREAM_IDLE_MS) return undefined;
  return { streamMs: longest + IDLE_MARGIN_MS, flushMs: STREAM_IDLE_MS };
}

/** A limit for routes with timeouts switched off, for streams whose client is gone. */
const UNBOUNDED_IDLE_MS = 3_600_000;
const IDLE_MARGIN_MS = 1_000;

/** 500 for what cannot be sent to a backend, 502 for what cannot be sent back. */
function unservable(...filters: readonly Filters[]): 500 | 502 | undefined {
  if (!filters.every((each) => headersWritable(each.requestHeaders) && hostWritable(each))) return 500;
  return filters.every((each) => headersWritable(each.responseHeaders)) ? undefined : 502;
}

function mirrorOf({ backend, numerator, denominator }: Mirror, context: RuleContext): readonly Message[] {
  if (backend === undefined) return [];
  context.dependsOn(backend);
  if (context.backend(backend)?.refused !== undefined) return [];
  context.uses(backend, "plain");
  const share = denominator === 0 ? 0 : Math.round((numerator * MILLION) / denominator);
  return [mirrorPolicy(clusterName(context.port.gateway, backend, "plain"), Math.min(share, MILLION))];
}

function perFilter({ cors }: Filters): readonly (readonly [filter: string, config: Message])[] {
  return cors === undefined ? [] : [[CORS_FILTER, corsPolicy(cors)]];
}

/**
 * Whatever the backend says about other origins gives way to the route's policy, which the filter
 * adds later. What is allowed depends on who asks, and caches must know.
 */
function corsEdits({ cors }: Filters): readonly HeaderEdit[] {
  if (cors === undefined) return [];
  const removed = CORS_HEADERS.map((name): HeaderEdit => ({ op: "remove", name }));
  const same = cors.allowOrigins.includes("*") && !cors.allowCredentials;
  return same ? removed : [...removed, { op: "add", name: "vary", value: "Origin" }];
}

const CORS_HEADERS: readonly string[] = [
  "access-control-allow-origin",
  "access-control-allow-credentials",
  "access-control-allow-methods",
  "access-control-allow-headers",
  "access-control-expose-headers",
  "access-control-max-age",
];

function matchOf({ path, method, headers, query }: RequestMatch, share?: number): Message {
  return routeMatch({
    path: pathOf(path),
    headers: [
      ...(method === undefined ? [] : [headerMatch({ name: ":method", type: "exact", value: method })]),
      ...headers.map(headerValueMatch),
    ],
    query: query.map(queryValueMatch),
    ...(share === undefined ? {} : { share }),
  });
}

function pathOf(path: RequestMatch["path"]): Parameters<typeof routeMatch>[0]["path"] {
  if (path === undefined) return { type: "any", value: "" };
  if (path.type !== "prefix") return path;
  const elements = prefixElements(path.value);
  return elements === "" ? { type: "prefix", value: "/" } : { type: "elements", value: elements };
}

function redirectOf(
  action: RedirectAction,
  { path }: RequestMatch,
  context: RuleContext,
): Message | undefined {
  const { port, scope } = context;
  const scheme = action.scheme ?? (port.protocol === "http" ? "http" : "https");
  const wanted =
    action.port ?? (action.scheme === undefined ? undefined : wellKnownPort(scheme)) ?? port.port;
  const exact = scope === "" || isWildcard(scope) ? undefined : scope;
  return redirect({
    scheme,
    host: action.hostname ?? exact,
    port: wanted === wellKnownPort(scheme) ? undefined : wanted,
    path:
      action.path === undefined
        ? undefined
        : action.path.type === "full"
          ? { full: fullPath(action.path) }
          : pathSubstitution(action.path, path),
    status: action.statusCode,
  });
}

function wellKnownPort(scheme: string): number | undefined {
  if (scheme === "http") return 80;
  return scheme === "https" ? 443 : undefined;
}

/** What access logs say about a request: listener, hostname pattern, and where the rule stands. */
export function routeName({ origin }: Rule, { port, listener, hostname }: RuleContext): string {
  const { kind, namespace, name, rule, match } = origin;
  const whose = [listenerWord(port.gateway, listener), hostname === "" ? "*" : hostname];
  return [...whose, kind, namespace, name, rule, match].join(" ");
}
