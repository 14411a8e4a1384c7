/**
 * A route's rules in the plan's words, whatever the route's kind. A rule that cannot be served as
 * written is dropped alone; the others of the route still serve
 * (Gateway.spec.listeners.allowedRoutes: "All valid rules within a Route … should be implemented").
 */
import type {
  FilteredBackendRef,
  GrpcRouteRule,
  HttpRouteRule,
  Route,
  SessionPersistence,
} from "../../api/routes.ts";
import type { ExternalAuthCheck } from "../../plan/authentication.ts";
import type { GuardItem } from "../../plan/guard.ts";
import { boundedRetry, DEFAULT_RETRY_ATTEMPTS } from "../../plan/retry-limits.ts";
import type {
  Action,
  Filters,
  ForwardAction,
  PersistencePolicy,
  RequestMatch,
  RespondAction,
  Rule,
  RuleOrigin,
} from "../../plan/rule.ts";
import { milliseconds } from "../foundation/durations.ts";
import type { BackendTarget } from "../foundation/item-ids.ts";
import type { Failure } from "../foundation/verdict.ts";
import { type CompiledRules, type Resolve, Unservable } from "./compiled.ts";
import type { FilterGuard } from "./external-auth.ts";
import { type CompiledFilters, compileFilters, type FilterContext, unsupported } from "./filters.ts";
import { compileGrpcMatch, compileHttpMatch } from "./matches.ts";
import { checkedNumber, checkedPersistence } from "./wire-text.ts";

export interface CompileContext {
  readonly features: ReadonlySet<string>;
  readonly resolve: (
    reference: Parameters<Resolve>[0],
    /** Of the rule that refers to it. */
    ruleName: string | undefined,
  ) => { readonly target: BackendTarget } | { readonly failure: Failure };
  readonly idOf: (target: BackendTarget) => string;
  /** Of the Gateway, in the plan's words. */
  readonly gateway: string;
}

type AnyRule = HttpRouteRule & GrpcRouteRule;

export function compileRules(route: Route, context: CompileContext): CompiledRules {
  const rules: Rule[] = [];
  const unresolved: Failure[] = [];
  const dropped: { rule: number; failure: Failure }[] = [];
  const targets = new Map<string, BackendTarget>();
  const guards: GuardItem[] = [];

  let ruleName: string | undefined;
  const resolve: Resolve = (reference) => {
    const result = context.resolve(reference, ruleName);
    if ("failure" in result) {
      unresolved.push(result.failure);
      return undefined;
    }
    const id = context.idOf(result.target);
    targets.set(id, result.target);
    return id;
  };
  const filterContext: FilterContext = {
    resolve,
    features: context.features,
    unresolved: (reason, message) => unresolved.push({ reason, message }),
  };

  for (const [index, rule] of rulesOf(route).entries()) {
    ruleName = rule.name;
    const matches = compileMatches(route, rule);
    const compiled =
      matches instanceof Unservable ? matches : compileAction(route, rule, resolve, filterContext);
    if (matches instanceof Unservable || compiled instanceof Unservable) {
      const { failure } = matches instanceof Unservable ? matches : (compiled as Unservable);
      dropped.push({ rule: index, failure });
      continue;
    }
    const { action } = compiled;
    const placed = placeGuards(compiled.guards, { route, rule: index, gateway: context.gateway });
    guards.push(...placed.items);
    for (const [place, match] of matches.entries()) {
      const origin: RuleOrigin = {
        kind: route.kind,
        namespace: route.metadata.namespace ?? "",
        name: route.metadata.name,
        rule: index,
        ...(rule.name === undefined ? {} : { ruleName: rule.name }),
        match: place,
      };
      rules.push({ origin, match, action, ...(placed.ids.length === 0 ? {} : { guards: placed.ids }) });
    }
  }
  // Copies drop the spare room of arrays that grew: compiled rules are kept for every route.
  return {
    rules: rules.slice(),
    unresolved: unresolved.length === 0 ? NONE : unresolved.slice(),
    dropped: dropped.length === 0 ? NONE : dropped.slice(),
    targets: [...targets.values()],
    guards: guards.length === 0 ? NONE : guards,
  };
}

const NONE: readonly never[] = [];

/**
 * A GRPCRoute without rules matches everything and forwards nowhere, like an HTTPRoute whose
 * default rule admission has written.
 */
function rulesOf(route: Route): readonly AnyRule[] {
  const rules = (route.spec.rules ?? []) as readonly AnyRule[];
  return route.kind === "GRPCRoute" && rules.length === 0 ? [{}] : rules;
}

const ANY: RequestMatch = { headers: [], query: [] };

function compileMatches(route: Route, rule: AnyRule): readonly RequestMatch[] | Unservable {
  if (route.kind !== "HTTPRoute" && route.kind !== "GRPCRoute") return [ANY];
  const written = rule.matches ?? [];
  if (written.length === 0)
    return [route.kind === "HTTPRoute" ? { ...ANY, path: { type: "prefix", value: "/" } } : ANY];
  const compiled: RequestMatch[] = [];
  for (const match of written) {
    const result = route.kind === "HTTPRoute" ? compileHttpMatch(match) : compileGrpcMatch(match as never);
    if (result instanceof Unservable) return result;
    compiled.push(result);
  }
  return compiled;
}

function compileAction(
  route: Route,
  rule: AnyRule,
  resolve: Resolve,
  filterContext: FilterContext,
): CompiledAction | Unservable {
  const compiled = compileFilters(rule.filters, filterContext);
  if (compiled instanceof Unservable) return compiled;
  const { guards = NONE } = compiled;
  if (compiled.redirect !== undefined) {
    const filter = compiled.broken;
    const redirect: Action = { ...compiled.redirect, filters: compiled.filters };
    return { action: filter === undefined ? redirect : respond(filter), guards };
  }
  const policies = compilePolicies(rule, filterContext.features);
  if (policies instanceof Unservable) return policies;
  const backends: { backend?: string; weight: number; filters: Filters }[] = [];
  for (const reference of (rule.backendRefs ?? []) as readonly FilteredBackendRef[]) {
    const own = compileFilters(reference.filters, filterContext);
    if (own instanceof Unservable) return own;
    // What is asked for one backend alone would have to be asked after the choice of a backend.
    if (own.guards !== undefined) return unsupported("filter ExternalAuth of a backendRef");
    const backend = resolve(reference);
    const usable = backend !== undefined && own.broken === undefined;
    backends.push({ ...(usable ? { backend } : {}), weight: reference.weight, filters: own.filters });
  }
  const action: Action = broken(compiled, route, backends) ?? {
    type: "forward",
    backends: backends.slice(),
    filters: compiled.filters,
    ...policies,
  };
  return { action, guards };
}

interface CompiledAction {
  readonly action: Action;
  readonly guards: readonly FilterGuard[];
}

/** A rule names its guards also where a reference does not resolve and there is no item. */
function placeGuards(
  guards: readonly FilterGuard[],
  at: { readonly route: Route; readonly rule: number; readonly gateway: string },
): { readonly ids: readonly string[]; readonly items: readonly GuardItem[] } {
  const { kind, metadata } = at.route;
  const { namespace = "", name } = metadata;
  const ids: string[] = [];
  const items: GuardItem[] = [];
  for (const [place, { check }] of guards.entries()) {
    const id = `guard:${at.gateway}:${kind}/${namespace}/${name}:rules.${at.rule}.externalAuth.${place}${asked(check)}`;
    ids.push(id);
    if (check === undefined) continue;
    const policy = { kind: "HTTPRoute", namespace, name } as const;
    items.push({ type: "guard", id, gateway: at.gateway, policy, check });
  }
  return { ids, items };
}

/**
 * Whom a guard asks is part of its id. Rules move within a route, and a data plane that learns of
 * it late must not ask the service of another rule.
 */
function asked(check: ExternalAuthCheck | undefined): string {
  if (check === undefined) return "";
  const service = check.backend.replace(/^backend:[^:]*:/, "");
  return ` ${check.protocol ?? "http"}:${service}${check.path.value}`;
}

/** What is answered with 500: a filter that cannot be applied, or nobody to forward to. */
function broken(
  { broken: filter }: CompiledFilters,
  route: Route,
  backends: readonly { readonly backend?: string }[],
): RespondAction | undefined {
  if (filter !== undefined) return respond(filter);
  if (route.kind !== "HTTPRoute" && route.kind !== "GRPCRoute") return undefined;
  if (backends.length === 0) return respond("the rule has no backendRefs");
  if (backends.every(({ backend }) => backend === undefined))
    return respond("no backendRef of the rule can be resolved");
  return undefined;
}

function respond(reason: string): RespondAction {
  return { type: "respond", status: 500, reason };
}

const NO_POLICIES: Pick<ForwardAction, "timeouts"> = { timeouts: {} };

function compilePolicies(
  rule: AnyRule,
  features: ReadonlySet<string>,
): Pick<ForwardAction, "timeouts" | "retry" | "persistence"> | Unservable {
  const { request, backendRequest } = rule.timeouts ?? {};
  if (request !== undefined && !features.has("HTTPRouteRequestTimeout"))
    return unsupported("timeouts.request");
  if (backendRequest !== undefined && !features.has("HTTPRouteBackendTimeout"))
    return unsupported("timeouts.backendRequest");
  if (rule.retry !== undefined && !features.has("HTTPRouteRetryCodes")) return unsupported("retry");
  if (rule.sessionPersistence !== undefined && !features.has("HTTPRouteSessionPersistence")) {
    return unsupported("sessionPersistence");
  }
  if (rule.timeouts === undefined && rule.retry === undefined && rule.sessionPersistence === undefined) {
    return NO_POLICIES;
  }
  const unfit = checkedPersistence(rule.sessionPersistence) ?? checkedRetry(rule.retry);
  if (unfit !== undefined) return unfit;
  const requestMs = timerMs(request);
  const backendRequestMs = timerMs(backendRequest);
  return {
    // A timeout of zero turns the limit off (HTTPRouteTimeouts). An absent timeout does not: the
    // data plane may apply its own limit.
    timeouts: {
      ...(requestMs > 0 ? { requestMs } : {}),
      ...(backendRequestMs > 0 ? { backendRequestMs } : {}),
      ...(isOff(request) || isOff(backendRequest) ? { unbounded: true } : {}),
    },
    ...(rule.retry === undefined
      ? {}
      : {
          retry: boundedRetry({
            attempts: rule.retry.attempts ?? DEFAULT_RETRY_ATTEMPTS,
            codes: rule.retry.codes ?? [],
            ...(rule.retry.backoff === undefined ? {} : { backoffMs: timerMs(rule.retry.backoff) }),
          }),
        }),
    ...(rule.sessionPersistence === undefined ? {} : { persistence: persistence(rule.sessionPersistence) }),
  };
}

function checkedRetry(retry: HttpRouteRule["retry"]): Unservable | undefined {
  for (const code of retry?.codes ?? []) {
    const problem = checkedNumber(code, [400, 599], "each of retry.codes");
    if (problem !== undefined) return problem;
  }
  return checkedNumber(retry?.attempts, [0, Number.MAX_SAFE_INTEGER], "retry.attempts");
}

/**
 * The longest time that a timer can be set to: 24 days. Some timers take a longer one for no limit,
 * others expire at once.
 */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

function timerMs(duration: string | undefined): number {
  return duration === undefined ? 0 : Math.min(milliseconds(duration), LONGEST_TIMER_MS);
}

function isOff(duration: string | undefined): boolean {
  return duration !== undefined && milliseconds(duration) === 0;
}

function persistence(spec: SessionPersistence): PersistencePolicy {
  const absolute = spec.absoluteTimeout === undefined ? 0 : milliseconds(spec.absoluteTimeout);
  return {
    type: spec.type === "Header" ? "header" : "cookie",
    name: (spec.type === "Header" ? spec.header?.name : spec.cookie?.name) ?? "mergeway-session",
    ...(absolute > 0 ? { absoluteTimeoutMs: absolute } : {}),
    permanent: spec.cookie?.lifetimeType === "Permanent",
    ...(spec.cookie?.path === undefined ? {} : { path: spec.cookie.path }),
  };
}
