/**
 * How the backends of a rule are reached: each setting of BackendPolicies that holds, with the
 * policy and section that it comes from, and those that gave way.
 */
import { BACKEND_FIELDS } from "../../engine/policies/backend-fields.ts";
import { holdingSections, isCombined } from "../../engine/policies/backend-settings.ts";
import type { BackendView, RouteView } from "../merged-state.ts";
import type { EffectivePolicy, ExplainedPlace, ExplainedRule } from "./effective-policy.ts";
import { isSame, levelAt, type SettingLevel, sourceOf } from "./setting-levels.ts";

const KIND = "BackendPolicy";

export function backendSettings({ root, owner }: ExplainedPlace, rule: ExplainedRule): EffectivePolicy {
  const { listener, route, backends = [] } = rule;
  const entry = owner.listeners.find(({ section }) => section === listener?.section);
  const taken = route && entry?.routes.find((each) => isSame(each, route));
  const reached = (taken?.backends ?? []).filter(({ namespace, name, port }) =>
    backends.some((each) => each.namespace === namespace && each.name === name && each.port === port),
  );
  const found = reached.map((backend) =>
    settingsAt([
      ...present(levelAt(KIND, root, root.policies)),
      ...levelsOfService(backend),
      ...(taken === undefined ? [] : levelsOfRoute(taken, route?.ruleName)),
    ]),
  );
  return {
    settings: withoutTwins(found.flatMap(({ settings }) => settings)),
    overridden: withoutTwins(found.flatMap(({ overridden }) => overridden)),
  };
}

function present(level: SettingLevel | undefined): readonly SettingLevel[] {
  return level === undefined ? [] : [level];
}

function levelsOfService({ namespace, name, policies = [] }: BackendView): readonly SettingLevel[] {
  const service = { kind: "Service", namespace, name };
  const whole = policies.filter(({ section }) => section === undefined);
  const ofPort = policies.filter(({ section }) => section !== undefined);
  return [...present(levelAt(KIND, service, whole)), ...present(levelAt(KIND, service, ofPort))];
}

function levelsOfRoute(route: RouteView, ruleName: string | undefined): readonly SettingLevel[] {
  const whole = route.policies.filter(({ section }) => section === undefined);
  const ofRule = route.policies.filter(({ section }) => section !== undefined && section === ruleName);
  return [...present(levelAt(KIND, route, whole)), ...present(levelAt(KIND, route, ofRule))];
}

function settingsAt(levels: readonly SettingLevel[]): EffectivePolicy {
  const all = BACKEND_FIELDS.map((field) => {
    const holding = holdingSections(levels, field);
    const kept = isCombined(field) ? holding : holding.slice(0, 1);
    const settings = kept.map(({ policy, section }) => ({
      ...sourceOf(policy, section),
      field,
      value: policy.view.values?.[`${section}.${field}`] ?? "",
    }));
    const overridden = levels.flatMap((policy) =>
      (["overrides", "defaults"] as const)
        .filter((section) => field in policy[section])
        .filter((section) => !kept.some((each) => each.policy === policy && each.section === section))
        .flatMap((section) => {
          const by = kept[0];
          if (by === undefined) return [];
          return [{ ...sourceOf(policy, section), field, by: sourceOf(by.policy, by.section) }];
        }),
    );
    return { settings, overridden };
  });
  return {
    settings: all.flatMap(({ settings }) => settings),
    overridden: all.flatMap(({ overridden }) => overridden),
  };
}

/** Several backends may have one policy in common. */
function withoutTwins<Item extends object>(items: readonly Item[]): readonly Item[] {
  return [...new Map(items.map((item) => [JSON.stringify(item), item])).values()];
}
