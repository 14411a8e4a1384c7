/** The levels at which policies are attached, and where a setting is written. */
import type { SectionedPolicyKind } from "../../engine/policies/attached-policies.ts";
import type { PolicySection } from "../../engine/policies/traffic-policies.ts";
import type { ObjectRef, PolicyView } from "../merged-state.ts";

/** Where a setting is written. */
export interface SettingSource {
  /** The policy. */
  readonly policy: ObjectRef;
  readonly section: PolicySection;
  /** What the policy is attached to. */
  readonly target: ObjectRef & { readonly section?: string };
}

/** The policy that counts at one level. */
export interface SettingLevel {
  readonly view: PolicyView;
  readonly target: SettingSource["target"];
  readonly defaults: Readonly<Record<string, true>>;
  readonly overrides: Readonly<Record<string, true>>;
}

export function levelAt(
  kind: SectionedPolicyKind,
  object: ObjectRef,
  policies: readonly PolicyView[],
): SettingLevel | undefined {
  const view = policies.find((each) => each.kind === kind && each.counts);
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

export function targetOf(
  { kind, namespace, name }: ObjectRef,
  { section }: PolicyView,
): SettingSource["target"] {
  return { kind, namespace, name, ...(section === undefined ? {} : { section }) };
}

export function sourceOf({ view, target }: SettingLevel, section: PolicySection): SettingSource {
  const { kind, namespace, name } = view;
  return { policy: { kind, namespace, name }, section, target };
}

export function isSame(a: ObjectRef, b: ObjectRef): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}
