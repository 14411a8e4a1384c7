/**
 * Guards in the plan: which rules name which, and the items themselves. The guards of a policy are
 * items of every Gateway that one of its targets belongs to, and of no other.
 */
import { type Key, partsOf } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { GuardItem } from "../../plan/guard.ts";
import type { ItemId } from "../../plan/plan.ts";
import type { Rule } from "../../plan/rule.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { targetKey, targetParts } from "../foundation/policy-targets.ts";
import type { Attachment } from "../listeners/attachment.ts";
import type { BackendUse } from "../references/backends.ts";
import type { RouteAttachment } from "../routes/route-attachment.ts";
import { policyAt } from "./attached-policies.ts";
import { type AuthenticationSources, isAuthenticationField, resolveCheck } from "./authentication.ts";
import { actionWith, changesSchemeAlone, type HoldingSetting } from "./rule-settings.ts";
import { withBody } from "./settings/direct-response.ts";
import {
  type AttachedTrafficPolicy,
  type EffectiveSetting,
  effectiveSettings,
  guardIds,
  isReferring,
  type ListenerLevels,
  placedChecks,
  ruleSettings,
  type TrafficPolicies,
} from "./traffic-policies.ts";

export interface GuardedPlace {
  readonly gateway: Key;
  readonly route: Key;
  /** Of the listener; absent: it has none. */
  readonly levels: ListenerLevels | undefined;
  /** Whether the listener has TLS. */
  readonly isSecure: boolean;
}

/** The rules of a route at a listener, each with the guards and settings that hold there. */
export function guardedRules(
  rules: readonly Rule[],
  { gateway, route, levels = [], isSecure }: GuardedPlace,
  lookup: Lookup,
  { policies, inputs }: { readonly policies: TrafficPolicies; readonly inputs: Inputs },
): readonly Rule[] {
  const ofRoute = lookup.all(policies.byObject, route);
  if (levels.length === 0 && ofRoute.length === 0) return rules;
  // Rules of one name share their settings: a route may have many, and a Gateway many routes.
  const known = new Map<string | undefined, Holding>();
  return rules.map((rule) => {
    const { kind, ruleName } = rule.origin;
    const name = ofRoute.length === 0 ? undefined : ruleName;
    let holding = known.get(name);
    if (holding === undefined) {
      const own = ofRoute.length === 0 ? [] : routeLevels(route, name, lookup, policies);
      const effective = effectiveSettings([...levels, ...own]);
      holding = {
        guards: guardIds(gateway, kind, effective),
        unasked: guardIds(gateway, kind, effective.filter(isUnasked)),
        settings: resolvedSettings(ruleSettings(kind, effective), lookup, inputs),
      };
      known.set(name, holding);
    }
    const { settings } = holding;
    const action = settings.length === 0 ? rule.action : actionWith(rule.action, settings, isSecure);
    // Whoever is sent to HTTPS says there who it is, and not in clear text.
    const isUnaskedRule = !isSecure && changesSchemeAlone(action);
    const guards = isUnaskedRule ? holding.unasked : holding.guards;
    // What the route itself asks for comes last: it is the nearest level.
    const own = isUnaskedRule && action !== rule.action ? NO_GUARDS : (rule.guards ?? NO_GUARDS);
    if (guards.length === 0 && own.length === (rule.guards ?? NO_GUARDS).length)
      return action === rule.action ? rule : { ...rule, action };
    return { ...rule, guards: [...guards, ...own], action };
  });
}

function isUnasked({ field }: EffectiveSetting): boolean {
  return !isAuthenticationField(field);
}

function resolvedSettings(
  settings: readonly HoldingSetting[],
  lookup: Lookup,
  inputs: Inputs,
): readonly HoldingSetting[] {
  return settings.map((each) => {
    const { setting, namespace } = each;
    if (setting.type !== "directResponse") return each;
    return { ...each, setting: withBody(setting, namespace, lookup, inputs) };
  });
}

const NO_GUARDS: readonly ItemId[] = [];

interface Holding {
  readonly guards: readonly ItemId[];
  /** Those that do not ask who sends a request. */
  readonly unasked: readonly ItemId[];
  readonly settings: readonly HoldingSetting[];
}

function routeLevels(
  route: Key,
  ruleName: string | undefined,
  lookup: Lookup,
  policies: TrafficPolicies,
): readonly AttachedTrafficPolicy[] {
  return [
    policyAt(targetKey(route, undefined), lookup, policies) ?? [],
    (ruleName && policyAt(targetKey(route, ruleName), lookup, policies)) || [],
  ].flat();
}

export interface GuardSources extends AuthenticationSources {
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly routes: ReadonlyCollection<RouteAttachment>;
}

export interface Guards {
  readonly guards: ReadonlyCollection<GuardItem>;
  /** Services that guards ask, by the guard's id. */
  readonly guardBackends: ReadonlyCollection<BackendUse>;
}

interface ResolvedGuard {
  readonly item: GuardItem;
  readonly use?: BackendUse;
}

export function deriveGuardItems(
  graph: Graph,
  trafficPolicies: TrafficPolicies,
  sources: GuardSources,
): Guards {
  const resolved = graph.expand<AttachedTrafficPolicy, ResolvedGuard>(
    "resolved guards",
    trafficPolicies.policies,
    (key, policy, lookup) => {
      // A policy that an older one keeps from all of its targets guards nothing.
      const targets = policy.targets.filter(
        (target) => policyAt(target, lookup, trafficPolicies)?.key === key,
      );
      const gateways = new Set(targets.flatMap((target) => gatewaysOf(target, lookup, sources)));
      return [...gateways].flatMap((gateway) =>
        resolvedGuards(gateway, policy, lookup, sources).map((guard) => [guard.item.id, guard] as const),
      );
    },
  );
  return {
    guards: graph.derive("guard items", resolved, (_id, { item }) => item),
    guardBackends: graph.derive("backend uses of guards", resolved, (_id, { use }) => use),
  };
}

/** Without those whose references do not resolve. */
function resolvedGuards(
  gateway: Key,
  policy: AttachedTrafficPolicy,
  lookup: Lookup,
  sources: GuardSources,
): readonly ResolvedGuard[] {
  const { namespace } = partsOf(policy.key);
  return placedChecks(gateway, policy).flatMap(({ check, item }): ResolvedGuard[] => {
    if (!isReferring(check)) return [{ item: item(check) }];
    const resolved = resolveCheck(check, { gateway, namespace }, lookup, sources);
    if ("failure" in resolved) return [];
    const { target } = resolved;
    return [{ item: item(resolved.check), ...(target === undefined ? {} : { use: { gateway, target } }) }];
  });
}

function gatewaysOf(
  target: string,
  lookup: Lookup,
  {
    attachments,
    routes,
  }: {
    readonly attachments: ReadonlyCollection<Attachment>;
    readonly routes: ReadonlyCollection<RouteAttachment>;
  },
): readonly Key[] {
  const { object } = targetParts(target);
  const owner = lookup.get(attachments, object)?.gateway;
  if (owner !== undefined) return [owner];
  const parents = lookup.get(routes, object)?.parents ?? [];
  return parents.flatMap(({ bindings }) => bindings.map(({ gateway }) => gateway));
}
