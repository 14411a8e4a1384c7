/**
 * The effective policy of a request: each setting with the policy and section that it comes from,
 * and the defaults that gave way. What holds is read from the guards of the rule, which the data
 * plane has as well; where it comes from, from the levels.
 */
import { isAuthenticationField } from "../../engine/policies/authentication.ts";
import type { BackendField } from "../../engine/policies/backend-fields.ts";
import {
  type EffectiveSetting,
  effectiveSettings,
  fieldsOfRules,
  type PolicySection,
  type TrafficField,
} from "../../engine/policies/traffic-policies.ts";
import type { Explanation, GuardOutcome } from "../../matching/explain/explanation.ts";
import type { ClientAddressPlan } from "../../plan/client-address.ts";
import type { GuardCheck } from "../../plan/guard.ts";
import type { PortItem } from "../../plan/plan.ts";
import type { MergedState, ObjectRef, OwnerView, PolicyView } from "../merged-state.ts";
import { backendSettings } from "./effective-backend.ts";
import {
  isSame,
  levelAt,
  type SettingLevel,
  type SettingSource,
  sourceOf,
  targetOf,
} from "./setting-levels.ts";

export interface EffectivePolicy {
  readonly settings: readonly EffectiveValue[];
  readonly overridden: readonly OverriddenDefault[];
}

export interface EffectiveValue extends SettingSource {
  readonly field: TrafficField | ClientField | BackendField;
  /**
   * Of a TrafficPolicy, with what they do to the request. Empty: they cannot be read, and nothing
   * passes.
   */
  readonly checks?: readonly { readonly check: GuardCheck; readonly result: GuardOutcome["result"] }[];
  /**
   * What becomes part of the rule, or of the port for a ClientPolicy. The route comes before a
   * default.
   */
  readonly value?: string;
  /** Of a ClientPolicy. */
  readonly clientAddress?: ClientAddressPlan;
}

/**
 * A default of a farther level that another setting has replaced; of a BackendPolicy, any setting.
 */
export interface OverriddenDefault extends SettingSource {
  readonly field: TrafficField | BackendField;
  readonly by: SettingSource;
}

export type ClientField = "clientAddress" | "headerLimits" | "connections" | "clientCertificates";
export type ExplainedPort = Pick<PortItem, "clientAddress" | "clientLimits">;
export type ExplainedRule = Pick<Explanation, "listener" | "route" | "guards"> &
  Partial<Pick<Explanation, "backends">>;

export function effectivePolicy(
  state: MergedState,
  rule: ExplainedRule,
  port: ExplainedPort = {},
): EffectivePolicy {
  const place = placeOf(state, rule);
  if (place === undefined) return { settings: [], overridden: [] };
  const ofClient = [...clientSettings(place.root, port), ...clientDemands(place, rule)];
  if (rule.route === undefined) return { settings: ofClient, overridden: [] };
  const levels = levelsOf(place, rule);
  const fields = fieldsOfRules(rule.route.kind);
  const effective = effectiveSettings(levels)
    .filter(({ field }) => fields.includes(field))
    .filter((setting) => isAsked(setting, rule))
    .filter(isFirst);
  const settings = effective.map(({ policy, section, field }) => ({
    ...sourceOf(policy, section),
    field,
    ...settingValue(rule, policy.view, { section, field }),
  }));
  const overridden = fields.flatMap((field) => {
    const holding = effective.filter((each) => each.field === field);
    return levels
      .filter(({ defaults }) => field in defaults)
      .filter((policy) => !holding.some((each) => each.policy === policy && each.section === "defaults"))
      .flatMap((policy): OverriddenDefault[] => {
        const by = holding.find(({ section }) => section === "defaults") ?? holding.at(-1);
        if (by === undefined) return [];
        return [{ ...sourceOf(policy, "defaults"), field, by: sourceOf(by.policy, by.section) }];
      });
  });
  const ofBackends = backendSettings(place, rule);
  return {
    settings: [...ofClient, ...settings, ...ofBackends.settings],
    overridden: [...overridden, ...ofBackends.overridden],
  };
}

/** A rule that leads to HTTPS does not ask who sends a request: the ids of its guards tell. */
function isAsked(
  { policy, section, field }: EffectiveSetting<SettingLevel>,
  { guards }: ExplainedRule,
): boolean {
  const { namespace, name } = policy.view;
  const setting = `:${namespace}/${name}:${section}.${field}.`;
  return !isAuthenticationField(field) || guards.some(({ id }) => id.includes(setting));
}

/** A policy that is attached at two levels of a rule is one guard there. */
function isFirst(
  { policy, section, field }: EffectiveSetting<SettingLevel>,
  place: number,
  all: readonly EffectiveSetting<SettingLevel>[],
): boolean {
  const first = all.findIndex(
    (each) => each.section === section && each.field === field && isSame(each.policy.view, policy.view),
  );
  return first === place;
}

export interface ExplainedPlace {
  readonly root: OwnerView;
  readonly owner: OwnerView;
}

function placeOf({ gateways }: MergedState, { listener }: ExplainedRule): ExplainedPlace | undefined {
  if (listener === undefined) return undefined;
  for (const { owners } of gateways) {
    const owner = owners.find((each) => isSame(each, listener));
    const root = owners.find(({ role }) => role === "root");
    if (owner !== undefined && root !== undefined) return { root, owner };
  }
  return undefined;
}

/** From far to near: Gateway, set or child, listener, route, rule. */
function levelsOf(
  { root, owner }: ExplainedPlace,
  { listener, route }: ExplainedRule,
): readonly SettingLevel[] {
  const entry = owner.listeners.find(({ section }) => section === listener?.section);
  const taken = route && entry?.routes.find((each) => isSame(each, route));
  const ofRoute = taken?.policies ?? [];
  return [
    levelAt("TrafficPolicy", root, root.policies),
    owner === root ? undefined : levelAt("TrafficPolicy", owner, owner.policies),
    levelAt("TrafficPolicy", owner, entry?.policies ?? []),
    taken &&
      levelAt(
        "TrafficPolicy",
        taken,
        ofRoute.filter(({ section }) => section === undefined),
      ),
    taken &&
      levelAt(
        "TrafficPolicy",
        taken,
        ofRoute.filter(({ section }) => section !== undefined && section === route?.ruleName),
      ),
  ].filter((level) => level !== undefined);
}

const FIELD_OF_CHECK: Readonly<Record<GuardCheck["type"], TrafficField>> = {
  addresses: "clientAddresses",
  rateLimit: "rateLimits",
  requestBody: "requestBody",
  apiKeys: "apiKeys",
  basicAuth: "basicAuth",
  jwt: "jwt",
  externalAuth: "externalAuth",
};

function settingValue(
  { guards }: ExplainedRule,
  view: PolicyView,
  { section, field }: { readonly section: PolicySection; readonly field: TrafficField },
): Pick<EffectiveValue, "checks" | "value"> {
  const value = view.values?.[`${section}.${field}`];
  return value === undefined ? { checks: checksOf(guards, view, field) } : { value };
}

/** A policy gives a field to a rule from one of its sections only. */
function checksOf(
  guards: readonly GuardOutcome[],
  { namespace, name }: ObjectRef,
  field: TrafficField,
): NonNullable<EffectiveValue["checks"]> {
  return guards.flatMap(({ guard, result }) => {
    if (guard === undefined || guard.policy.kind !== undefined) return [];
    if (guard.policy.namespace !== namespace || guard.policy.name !== name) return [];
    return FIELD_OF_CHECK[guard.check.type] === field ? [{ check: guard.check, result }] : [];
  });
}

/** A policy of the Gateway; the override holds where both sections have a field. */
function clientSettings(
  root: OwnerView,
  { clientAddress, clientLimits }: ExplainedPort,
): readonly EffectiveValue[] {
  const view = root.policies.find(({ kind, counts }) => kind === "ClientPolicy" && counts);
  if (view === undefined) return [];
  const { kind, namespace, name } = view;
  const from = (field: ClientField): SettingSource & { readonly field: ClientField } => ({
    policy: { kind, namespace, name },
    section: view.overrides.includes(field) ? "overrides" : "defaults",
    target: targetOf(root, view),
    field,
  });
  const limits = clientLimits === undefined ? [] : (["headerLimits", "connections"] as const);
  return [
    ...(clientAddress === undefined ? [] : [{ ...from("clientAddress"), clientAddress }]),
    ...limits.flatMap((field) => {
      const source = from(field);
      const value = view.values?.[`${source.section}.${field}`];
      return value === undefined ? [] : [{ ...source, value }];
    }),
  ];
}

/** Demands of all levels that hold; of the defaults the nearest, as everywhere. */
function clientDemands(
  { root, owner }: ExplainedPlace,
  { listener }: ExplainedRule,
): readonly EffectiveValue[] {
  const entry = owner.listeners.find(({ section }) => section === listener?.section);
  const objects = [
    { object: root, policies: root.policies },
    ...(owner === root ? [] : [{ object: owner, policies: owner.policies }]),
    { object: owner, policies: entry?.policies ?? [] },
  ];
  const held: EffectiveValue[] = [];
  let byDefault: EffectiveValue | undefined;
  for (const { object, policies } of objects) {
    const view = policies.find(({ kind, counts }) => kind === "ClientPolicy" && counts);
    const value = (section: PolicySection): EffectiveValue | undefined => {
      const text = view?.values?.[`${section}.clientCertificates`];
      if (view === undefined || text === undefined) return undefined;
      const { kind, namespace, name } = view;
      const policy = { kind, namespace, name };
      return { policy, section, target: targetOf(object, view), field: "clientCertificates", value: text };
    };
    byDefault = value("defaults") ?? byDefault;
    const override = value("overrides");
    if (override === undefined) continue;
    held.push(override);
    byDefault = undefined;
  }
  return byDefault === undefined ? held : [...held, byDefault];
}
