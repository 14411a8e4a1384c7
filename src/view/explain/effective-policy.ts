/**
 * The effective policy of a request: each setting with the policy and section that it comes from,
 * and the defaults that gave way. What holds is read from the guards of the rule, which the data
 * plane has as well; where it comes from, from the levels.
 */
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
import type { MergedState, ObjectRef, OwnerView, PolicyView } from "../merged-state.ts";

export interface EffectivePolicy {
  readonly settings: readonly EffectiveValue[];
  readonly overridden: readonly OverriddenDefault[];
}

/** Where a setting is written. */
export interface SettingSource {
  /** The policy. */
  readonly policy: ObjectRef;
  readonly section: PolicySection;
  /** What the policy is attached to. */
  readonly target: ObjectRef & { readonly section?: string };
}

export interface EffectiveValue extends SettingSource {
  readonly field: TrafficField | "clientAddress";
  /**
   * Of a TrafficPolicy, with what they do to the request. Empty: they cannot be read, and nothing
   * passes.
   */
  readonly checks?: readonly { readonly check: GuardCheck; readonly result: GuardOutcome["result"] }[];
  /** Of a ClientPolicy. */
  readonly clientAddress?: ClientAddressPlan;
}

/** A default of a farther level that another setting has replaced. */
export interface OverriddenDefault extends SettingSource {
  readonly field: TrafficField;
  readonly by: SettingSource;
}

export type ExplainedRule = Pick<Explanation, "listener" | "route" | "guards">;

export function effectivePolicy(
  state: MergedState,
  rule: ExplainedRule,
  clientAddress: ClientAddressPlan | undefined,
): EffectivePolicy {
  const place = placeOf(state, rule);
  if (place === undefined) return { settings: [], overridden: [] };
  const ofClient = clientAddress === undefined ? [] : clientSetting(place.root, clientAddress);
  if (rule.route === undefined) return { settings: ofClient, overridden: [] };
  const levels = levelsOf(place, rule);
  const fields = fieldsOfRules(rule.route.kind);
  const effective = effectiveSettings(levels)
    .filter(({ field }) => fields.includes(field))
    .filter(isFirst);
  const settings = effective.map(({ policy, section, field }) => ({
    ...sourceOf(policy, section),
    field,
    checks: checksOf(rule.guards, policy.view, field),
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
  return { settings: [...ofClient, ...settings], overridden };
}

/** A policy that is attached at two levels of a rule is one guard there. */
function isFirst(
  { policy, section, field }: EffectiveSetting<Level>,
  place: number,
  all: readonly EffectiveSetting<Level>[],
): boolean {
  const first = all.findIndex(
    (each) => each.section === section && each.field === field && isSame(each.policy.view, policy.view),
  );
  return first === place;
}

interface Place {
  readonly root: OwnerView;
  readonly owner: OwnerView;
}

function placeOf({ gateways }: MergedState, { listener }: ExplainedRule): Place | undefined {
  if (listener === undefined) return undefined;
  for (const { owners } of gateways) {
    const owner = owners.find((each) => isSame(each, listener));
    const root = owners.find(({ role }) => role === "root");
    if (owner !== undefined && root !== undefined) return { root, owner };
  }
  return undefined;
}

/** The policy that counts at one level. */
interface Level {
  readonly view: PolicyView;
  readonly target: SettingSource["target"];
  readonly defaults: Readonly<Record<string, true>>;
  readonly overrides: Readonly<Record<string, true>>;
}

/** From far to near: Gateway, set or child, listener, route, rule. */
function levelsOf({ root, owner }: Place, { listener, route }: ExplainedRule): readonly Level[] {
  const entry = owner.listeners.find(({ section }) => section === listener?.section);
  const taken = route && entry?.routes.find((each) => isSame(each, route));
  const ofRoute = taken?.policies ?? [];
  return [
    levelAt(root, root.policies),
    owner === root ? undefined : levelAt(owner, owner.policies),
    levelAt(owner, entry?.policies ?? []),
    taken &&
      levelAt(
        taken,
        ofRoute.filter(({ section }) => section === undefined),
      ),
    taken &&
      levelAt(
        taken,
        ofRoute.filter(({ section }) => section !== undefined && section === route?.ruleName),
      ),
  ].filter((level) => level !== undefined);
}

function levelAt(object: ObjectRef, policies: readonly PolicyView[]): Level | undefined {
  const view = policies.find(({ kind, counts }) => kind === "TrafficPolicy" && counts);
  if (view === undefined) return undefined;
  const fieldsIn = (names: readonly string[]): Readonly<Record<string, true>> =>
    Object.fromEntries(names.map((name) => [name, true as const]));
  return {
    view,
    target: targetOf(object, view),
    defaults: fieldsIn(view.defaults),
    overrides: fieldsIn(view.overrides),
  };
}

function targetOf({ kind, namespace, name }: ObjectRef, { section }: PolicyView): SettingSource["target"] {
  return { kind, namespace, name, ...(section === undefined ? {} : { section }) };
}

function sourceOf({ view, target }: Level, section: PolicySection): SettingSource {
  const { kind, namespace, name } = view;
  return { policy: { kind, namespace, name }, section, target };
}

const FIELD_OF_CHECK: Readonly<Record<GuardCheck["type"], TrafficField>> = {
  addresses: "clientAddresses",
  rateLimit: "rateLimits",
};

/** A policy gives a field to a rule from one of its sections only. */
function checksOf(
  guards: readonly GuardOutcome[],
  { namespace, name }: ObjectRef,
  field: TrafficField,
): NonNullable<EffectiveValue["checks"]> {
  return guards.flatMap(({ guard, result }) => {
    if (guard?.policy.namespace !== namespace || guard.policy.name !== name) return [];
    return FIELD_OF_CHECK[guard.check.type] === field ? [{ check: guard.check, result }] : [];
  });
}

function clientSetting(root: OwnerView, clientAddress: ClientAddressPlan): readonly EffectiveValue[] {
  const view = root.policies.find(({ kind, counts }) => kind === "ClientPolicy" && counts);
  if (view === undefined) return [];
  const section = view.overrides.includes("clientAddress") ? "overrides" : "defaults";
  const { kind, namespace, name } = view;
  return [
    {
      policy: { kind, namespace, name },
      section,
      target: targetOf(root, view),
      field: "clientAddress",
      clientAddress,
    },
  ];
}

function isSame(a: ObjectRef, b: ObjectRef): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}
