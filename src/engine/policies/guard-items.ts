/**
 * Guards in the plan: which rules name which, and the items themselves. The guards of a policy are
 * items of every Gateway that one of its targets belongs to, and of no other.
 */
import type { Key } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { GuardItem } from "../../plan/guard.ts";
import type { ItemId } from "../../plan/plan.ts";
import type { Rule } from "../../plan/rule.ts";
import { targetKey, targetParts } from "../foundation/policy-targets.ts";
import type { Attachment } from "../listeners/attachment.ts";
import type { RouteAttachment } from "../routes/route-attachment.ts";
import { policyAt } from "./attached-policies.ts";
import {
  type AttachedTrafficPolicy,
  effectiveSettings,
  guardIds,
  guardItems,
  type ListenerLevels,
  type TrafficPolicies,
} from "./traffic-policies.ts";

export interface GuardedPlace {
  readonly gateway: Key;
  readonly route: Key;
  /** Of the listener; absent: it has none. */
  readonly levels: ListenerLevels | undefined;
}

/** The rules of a route at a listener, each with the guards that hold there. */
export function guardedRules(
  rules: readonly Rule[],
  { gateway, route, levels = [] }: GuardedPlace,
  lookup: Lookup,
  policies: TrafficPolicies,
): readonly Rule[] {
  const ofRoute = lookup.all(policies.byObject, route);
  if (levels.length === 0 && ofRoute.length === 0) return rules;
  // Rules of one name share their guards: a route may have many, and a Gateway many routes.
  const known = new Map<string | undefined, readonly ItemId[]>();
  return rules.map((rule) => {
    const { kind, ruleName } = rule.origin;
    const name = ofRoute.length === 0 ? undefined : ruleName;
    let guards = known.get(name);
    if (guards === undefined) {
      const own = ofRoute.length === 0 ? [] : routeLevels(route, name, lookup, policies);
      guards = guardIds(gateway, kind, effectiveSettings([...levels, ...own]));
      known.set(name, guards);
    }
    return guards.length === 0 ? rule : { ...rule, guards };
  });
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

export function deriveGuardItems(
  graph: Graph,
  trafficPolicies: TrafficPolicies,
  sources: {
    readonly attachments: ReadonlyCollection<Attachment>;
    readonly routes: ReadonlyCollection<RouteAttachment>;
  },
): ReadonlyCollection<GuardItem> {
  return graph.expand<AttachedTrafficPolicy, GuardItem>(
    "guard items",
    trafficPolicies.policies,
    (key, policy, lookup) => {
      // A policy that an older one keeps from all of its targets guards nothing.
      const targets = policy.targets.filter(
        (target) => policyAt(target, lookup, trafficPolicies)?.key === key,
      );
      const gateways = new Set(targets.flatMap((target) => gatewaysOf(target, lookup, sources)));
      return [...gateways].flatMap((gateway) =>
        guardItems(gateway, policy).map((item) => [item.id, item] as const),
      );
    },
  );
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
