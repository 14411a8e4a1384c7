/**
 * BackendPolicy: how a Gateway reaches its backends, level by level. From far to near:
 *
 *   Gateway → Service → port of the Service → route → rule
 *
 * - Who owns a Service says how it is reached, whoever's route it is. A policy of a route holds for
 *   that route's use alone.
 * - A choice (such as `loadBalancing`) can only be one: of the overrides the farthest holds,
 *   otherwise of the defaults the nearest. A farther default gives way to an override of a nearer
 *   level.
 * - `limits` hold together, of each the smallest: a nearer level can only be stricter than an
 *   override.
 * - A setting that cannot be read is left to the data plane: it guards nothing.
 */
import type { BackendPolicy, WrittenBackendSettings } from "../../api/backend-policy.ts";
import { type Key, keyFor } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { BackendItem } from "../../plan/backend.ts";
import { BACKEND_LIMITS, type BackendLimits } from "../../plan/limits/backend-limits.ts";
import type { BackendTarget } from "../foundation/item-ids.ts";
import { targetKey } from "../foundation/policy-targets.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Owner } from "../listeners/owners.ts";
import {
  type AttachedPolicies,
  type AttachedPolicy,
  deriveAttachedPolicies,
  type PolicySettings,
  policyAt,
} from "./attached-policies.ts";
import { type BackendField, type BackendSettings, readBackendSettings } from "./backend-fields.ts";
import type { PolicySection, PolicySections } from "./traffic-policies.ts";

export type AttachedBackendPolicy = AttachedPolicy<BackendSettings>;
export type AttachedBackendPolicies = AttachedPolicies<BackendSettings>;

const BACKEND_SETTINGS: PolicySettings<WrittenBackendSettings, BackendSettings> = {
  read: readBackendSettings,
  closed: {},
};

export function deriveBackendPolicies(
  graph: Graph,
  source: ReadonlyCollection<BackendPolicy>,
): AttachedBackendPolicies {
  return deriveAttachedPolicies(graph, "own backend policies", source, BACKEND_SETTINGS);
}

/** Whether all settings of a field hold together, so that a nearer level can only be stricter. */
export function isCombined(field: BackendField): boolean {
  return field === "limits";
}

/** One section of a policy that has a say in a field. */
export interface HoldingSection<Policy extends PolicySections> {
  readonly policy: Policy;
  readonly section: PolicySection;
}

/** `levels` from far to near; the overrides in that order, then the default that holds. */
export function holdingSections<Policy extends PolicySections>(
  levels: readonly Policy[],
  field: BackendField,
): readonly HoldingSection<Policy>[] {
  const found: HoldingSection<Policy>[] = [];
  let nearestDefault: HoldingSection<Policy> | undefined;
  for (const policy of levels) {
    if (policy.defaults !== undefined && field in policy.defaults)
      nearestDefault = { policy, section: "defaults" };
    if (policy.overrides !== undefined && field in policy.overrides) {
      found.push({ policy, section: "overrides" });
      nearestDefault = undefined;
    }
  }
  return nearestDefault === undefined ? found : [...found, nearestDefault];
}

/** The part of a backend that comes from policies. */
export type BackendPart = Pick<BackendItem, "balancing" | "persistence" | "limits">;

export function effectiveBackend(levels: readonly AttachedBackendPolicy[]): BackendPart {
  if (levels.length === 0) return {};
  const balancing = chosen(levels, "loadBalancing");
  const persistence = chosen(levels, "sessionPersistence");
  const limits = smallest(levels);
  return {
    ...(balancing === undefined ? {} : { balancing }),
    ...(persistence === undefined ? {} : { persistence }),
    ...(limits === undefined ? {} : { limits }),
  };
}

function chosen<Field extends BackendField>(
  levels: readonly AttachedBackendPolicy[],
  field: Field,
): BackendSettings[Field] | undefined {
  const [first] = holdingSections(levels, field);
  return first?.policy[first.section]?.[field];
}

export interface ReachedBackend {
  readonly gateway: Key;
  readonly target: BackendTarget;
  readonly portName: string | undefined;
}

/** Of each limit the smallest one that holds. */
function smallest(levels: readonly AttachedBackendPolicy[]): BackendLimits | undefined {
  const holding = holdingSections(levels, "limits").map(({ policy, section }) => policy[section]?.limits);
  if (holding.length === 0) return undefined;
  const limits: { -readonly [Name in keyof BackendLimits]: BackendLimits[Name] } = {};
  for (const name of BACKEND_LIMITS) {
    const values = holding.flatMap((each) => each?.[name] ?? []);
    if (values.length > 0) limits[name] = Math.min(...values);
  }
  return limits;
}

/** The policies that a backend meets at a Gateway, from far to near. */
export function backendLevels(
  { gateway, target: { namespace, name, use }, portName }: ReachedBackend,
  lookup: Lookup,
  policies: AttachedBackendPolicies,
): readonly AttachedBackendPolicy[] {
  const service = keyFor("Service", namespace, name);
  const [route = "", rule] = use?.split("|") ?? [];
  const targets = [
    targetKey(gateway, undefined),
    targetKey(service, undefined),
    ...(portName ? [targetKey(service, portName)] : []),
    ...(use === undefined ? [] : [targetKey(route, undefined)]),
    ...(rule === undefined ? [] : [targetKey(route, rule)]),
  ];
  return targets.flatMap((target) => policyAt(target, lookup, policies) ?? []);
}

/**
 * What a rule reaches its backends as: `BackendTarget.use`. Undefined: it has no policy of its own.
 */
export function ownUse(
  route: Key,
  ruleName: string | undefined,
  lookup: Lookup,
  policies: AttachedBackendPolicies,
): string | undefined {
  if (lookup.count(policies.byObject, route) === 0) return undefined;
  const ofRule = ruleName && policyAt(targetKey(route, ruleName), lookup, policies);
  if (ofRule) return `${route}|${ruleName}`;
  return policyAt(targetKey(route, undefined), lookup, policies) && route;
}

/** Why a policy about backends cannot be attached to an owner of listeners. */
export function backendsProblem(owner: Owner, section: string | undefined): Failure | undefined {
  if (owner.role === "root" && section === undefined) return undefined;
  const message =
    "a BackendPolicy holds for all backends of a Gateway: attach it to the Gateway itself, to Services or to routes";
  return { reason: "NotConfinable", message };
}
