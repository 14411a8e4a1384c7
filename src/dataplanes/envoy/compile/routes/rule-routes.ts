/**
 * One rule of the plan as routes of Envoy.
 *
 * A rule with several backends stands once per backend: each of these routes takes requests up to
 * its share of a number that Envoy draws once per request. So every backend has its own filters and
 * rewrites, and a share that cannot be served is a route that answers 500.
 */

import { prefixElements } from "../../../../matching/request-match.ts";
import type { BackendItem } from "../../../../plan/backend.ts";
import type { ItemId, PortItem } from "../../../../plan/plan.ts";
import type {
  Filters,
  ForwardAction,
  HeaderEdit,
  Mirror,
  RequestMatch,
  Rule,
  WeightedBackend,
} from "../../../../plan/rule.ts";
import { routeBodyCount } from "../../messages/body-count.ts";
import { headerOption, MILLION } from "../../messages/core.ts";
import { CORS_FILTER } from "../../messages/http-filters.ts";
import { STREAM_IDLE_MS } from "../../messages/http-manager.ts";
import {
  type FilterConfigs,
  type ForwardShape,
  headerMatch,
  mirrorPolicy,
  type RouteActionShape,
  type RouteShape,
  route,
  routeAction,
  routeMatch,
} from "../../messages/route.ts";
import { routeSessions } from "../../messages/sessions.ts";
import type * as proto from "../../wire/proto.ts";
import type { Message } from "../../wire/protobuf.ts";
import type { ClusterUse } from "../backend-cluster.ts";
import { routeCleaning } from "../field-cleaning.ts";
import {
  AGENT_CLUSTER,
  BODY_FILTER,
  CLEANING_FILTER,
  clusterName,
  listenerWord,
  SESSION_FILTER,
  unguardedName,
} from "../names.ts";
import { announced, announcesMore } from "./body-limit.ts";
import type { ScopeCompression } from "./compression.ts";
import { corsPolicy } from "./cors.ts";
import { respondRoutes } from "./direct-response.ts";
import type { RouteGuards, ScopeGuards } from "./guards.ts";
import { headerChanges } from "./header-edits.ts";
import { pathSubstitution } from "./path-edits.ts";
import { redirectOf } from "./redirects.ts";
import { methodVariants, ruleRetry } from "./retries.ts";
import { canMatch, headersWritable, hostWritable } from "./servable.ts";
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
  readonly uses: (backend: ItemId, use: ClusterUse) => void;
  /** Told of every backend that decides what a route looks like. */
  readonly dependsOn: (backend: ItemId) => void;
  readonly guards: ScopeGuards;
  readonly compression: ScopeCompression;
}

export function ruleRoutes(rule: Rule, context: RuleContext): readonly Message<proto.Route>[] {
  const { action, match } = rule;
  if (!canMatch(match)) return [];
  const name = routeName(rule, context);
  const own = context.guards.of(rule);
  if (own === undefined)
    return [
      guarded(joined(context.guards.none, context.compression.none), {
        name: unguardedName(name),
        match: matchOf(match),
        action: BROKEN,
      }),
    ];
  const guards = joined(own, context.compression.of(rule));
  const whole = (shape: RouteActionShape, more: Partial<RouteShape> = {}): Message<proto.Route> =>
    guarded(guards, { name, match: matchOf(match), action: shape, ...more });
  if (guards.spentSeconds !== undefined) {
    const retry = headerOption("retry-after", String(guards.spentSeconds), "overwrite");
    return [whole(SPENT, { responseHeaders: { options: [retry], remove: [] } })];
  }
  if (guards.maxBytes === undefined) return actionRoutes(rule, guards, context);
  const counted = routeBodyCount(AGENT_CLUSTER, guards.maxBytes);
  return [
    guarded(guards, {
      name,
      match: matchOf(match, { headers: announcesMore(guards.maxBytes) }),
      action: LARGE,
    }),
    ...(action.type === "forward" ? actionRoutes(rule, guards, context, announced) : []),
    ...actionRoutes(rule, { ...guards, perFilter: [...guards.perFilter, [BODY_FILTER, counted]] }, context),
  ];
}

/** The routes of a rule whose guards can be applied; `headers` must match besides. */
function actionRoutes(
  rule: Rule,
  guards: RouteGuards,
  context: RuleContext,
  headers: readonly Message<proto.HeaderMatcher>[] = [],
): readonly Message<proto.Route>[] {
  const { action, match } = rule;
  const name = routeName(rule, context);
  const whole = (shape: RouteActionShape, more: Partial<RouteShape> = {}): Message<proto.Route> =>
    guarded(guards, { name, match: matchOf(match, { headers }), action: shape, ...more });
  switch (action.type) {
    case "respond":
      return respondRoutes(action, name).map(({ headers: own, ...shape }) =>
        guarded(guards, { ...shape, match: matchOf(match, { headers: [...headers, ...own] }) }),
      );
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
      return methodVariants(action, match).flatMap((variant) => {
        const all = [...headers, ...variant.headers];
        return shares(action).map(({ backend, upTo }) => {
          const own = matchOf(match, { share: upTo, headers: all });
          const parts = { rule, action: variant.action, backend, name, match: own, guards };
          return guarded(guards, shareRoute(parts, context));
        });
      });
  }
}

function joined(guards: RouteGuards, more: FilterConfigs): RouteGuards {
  return { ...guards, perFilter: [...guards.perFilter, ...more] };
}

/** A route with what its guards need; whatever it answers, they come first. */
function guarded({ perFilter, metadata }: RouteGuards, shape: RouteShape): Message<proto.Route> {
  return route({ ...shape, perFilter: [...perFilter, ...(shape.perFilter ?? [])], metadata });
}

const LARGE: RouteActionShape = { type: "respond", status: 413 };
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
  readonly match: Message<proto.RouteMatch>;
  readonly guards: RouteGuards;
}

function shareRoute(parts: ShareParts, context: RuleContext): RouteShape {
  const { rule, action, backend, name, match, guards } = parts;
  const id = backend?.backend;
  if (id !== undefined) context.dependsOn(id);
  if (backend === undefined || id === undefined || context.backend(id)?.refused !== undefined) {
    return { name, match, action: BROKEN };
  }
  const broken = unservable(action.filters, backend.filters);
  if (broken !== undefined) return { name, match, action: { type: "respond", status: broken } };
  const variant = rule.origin.kind === "GRPCRoute" ? "h2" : "plain";
  context.uses(id, { variant, isRetried: action.retry !== undefined });
  const { filters, timeouts } = action;
  const retry = ruleRetry(action);
  const request = headerChanges(filters.requestHeaders, backend.filters.requestHeaders);
  const response = headerChanges(
    filters.responseHeaders,
    backend.filters.responseHeaders,
    corsEdits({ ...filters, ...backend.filters }),
  );
  const cleaning = routeCleaning({
    request: request.decided,
    guarded: guards.decided,
    response: response.decided,
  });
  const pathEdit = backend.filters.rewrite?.path ?? filters.rewrite?.path;
  const message = routeAction({
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
      ...sessionsOf(context.backend(id)?.persistence, context),
    ],
  };
}

/**
 * A route's own timeouts decide, not the listener's for streams on which nothing happens: that is
 * stretched where it would come first.
 */
export function idleTimeouts(timeouts: ForwardAction["timeouts"]): ForwardShape["idleTimeouts"] {
  const { requestMs = 0, backendRequestMs = 0, idleMs, unbounded } = timeouts;
  if (idleMs !== undefined) return { streamMs: idleMs, flushMs: Math.min(idleMs, STREAM_IDLE_MS) };
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

function mirrorOf(
  { backend, numerator, denominator }: Mirror,
  context: RuleContext,
): readonly Message<proto.RequestMirrorPolicy>[] {
  if (backend === undefined) return [];
  context.dependsOn(backend);
  if (context.backend(backend)?.refused !== undefined) return [];
  context.uses(backend, { variant: "plain", isRetried: false });
  const share = denominator === 0 ? 0 : Math.round((numerator * MILLION) / denominator);
  return [mirrorPolicy(clusterName(context.port.gateway, backend, "plain"), Math.min(share, MILLION))];
}

function sessionsOf(
  persistence: BackendItem["persistence"],
  { port }: Pick<RuleContext, "port">,
): FilterConfigs {
  return persistence === undefined
    ? []
    : [[SESSION_FILTER, routeSessions(persistence, port.protocol === "tls")]];
}

function perFilter({ cors }: Filters): FilterConfigs {
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

interface MoreMatch {
  readonly share?: number | undefined;
  readonly headers?: readonly Message<proto.HeaderMatcher>[];
}

function matchOf(
  { path, method, headers, query }: RequestMatch,
  more: MoreMatch = {},
): Message<proto.RouteMatch> {
  return routeMatch({
    path: pathOf(path),
    headers: [
      ...(method === undefined ? [] : [headerMatch({ name: ":method", type: "exact", value: method })]),
      ...headers.map(headerValueMatch),
      ...(more.headers ?? []),
    ],
    query: query.map(queryValueMatch),
    ...(more.share === undefined ? {} : { share: more.share }),
  });
}

function pathOf(path: RequestMatch["path"]): Parameters<typeof routeMatch>[0]["path"] {
  if (path === undefined) return { type: "any", value: "" };
  if (path.type !== "prefix") return path;
  const elements = prefixElements(path.value);
  return elements === "" ? { type: "prefix", value: "/" } : { type: "elements", value: elements };
}

/** What access logs say about a request: listener, hostname pattern, and where the rule stands. */
export function routeName({ origin }: Rule, { port, listener, hostname }: RuleContext): string {
  const { kind, namespace, name, rule, match } = origin;
  const whose = [listenerWord(port.gateway, listener), hostname === "" ? "*" : hostname];
  return [...whose, kind, namespace, name, rule, match].join(" ");
}
