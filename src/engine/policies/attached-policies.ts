/**
 * Policies and what they are attached to (GEP-713). A policy names targets in its own namespace: a
 * Gateway, a ListenerSet, an XListenerSet, a route or a Service, each as a whole or by the name of
 * a section. Of two policies of one kind with the same target the older one counts, then the first
 * by `namespace/name`; the other is Conflicted there.
 */
import { type Key, keyFor, keyOf } from "../../api/key.ts";
import type { ObjectMeta } from "../../api/metadata.ts";
import type { PolicyTarget } from "../../api/policies.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import { type TargetKey, targetKey, targetParts } from "../foundation/policy-targets.ts";
import { ageRank, type Rank } from "../foundation/precedence.ts";
import type { Failure } from "../foundation/verdict.ts";

export interface AttachedPolicy<Settings> {
  readonly key: Key;
  readonly rank: Rank;
  readonly targets: readonly TargetKey[];
  readonly defaults?: Settings;
  readonly overrides?: Settings;
  /** Why the policy cannot be applied as it is written. What it guards stays closed. */
  readonly invalid?: Failure;
}

export interface AttachedPolicies<Settings> {
  readonly policies: ReadonlyCollection<AttachedPolicy<Settings>>;
  readonly byTarget: Index<AttachedPolicy<Settings>>;
  /** By the object of the target, whatever its section. */
  readonly byObject: Index<AttachedPolicy<Settings>>;
}

/** The kinds of policy that have sections. */
export type SectionedPolicyKind = "TrafficPolicy" | "ClientPolicy" | "BackendPolicy";

type PolicyResource<Written> = Extract<Resource, { readonly kind: SectionedPolicyKind }> & {
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly unreadable?: string;
    readonly targetRefs: readonly PolicyTarget[];
    readonly defaults?: Written;
    readonly overrides?: Written;
  };
};

/** What is written in one section of a policy, read. */
export type ReadSettings<Written, Settings> = (
  written: Written,
) => { readonly settings: Settings } | { readonly settings: Settings; readonly problem: string };

export interface PolicySettings<Written, Settings> {
  readonly read: ReadSettings<Written, Settings>;
  /** Override what nobody could read. */
  readonly closed: Settings;
}

export function deriveAttachedPolicies<Written, Settings>(
  graph: Graph,
  name: string,
  source: ReadonlyCollection<PolicyResource<Written>>,
  settings: PolicySettings<Written, Settings>,
): AttachedPolicies<Settings> {
  const policies = graph.derive<PolicyResource<Written>, AttachedPolicy<Settings>>(
    name,
    source,
    (_key, policy) => attachedPolicy(policy, settings),
  );
  const byTarget = graph.index(`${name} by target`, policies, (_key, { targets, rank }) =>
    targets.map((at) => ({ at, sort: rank })),
  );
  const byObject = graph.index(`${name} by object`, policies, (_key, { targets, rank }) =>
    [...new Set(targets.map((target) => targetParts(target).object))].map((at) => ({ at, sort: rank })),
  );
  return { policies, byTarget, byObject };
}

function attachedPolicy<Written, Settings>(
  policy: PolicyResource<Written>,
  { read, closed }: PolicySettings<Written, Settings>,
): AttachedPolicy<Settings> {
  const { metadata, spec } = policy;
  const defaults = spec.defaults === undefined ? undefined : read(spec.defaults);
  const overrides =
    spec.unreadable !== undefined
      ? { settings: closed }
      : spec.overrides === undefined
        ? undefined
        : read(spec.overrides);
  const invalid =
    unreadable(spec.unreadable) ?? problemIn("overrides", overrides) ?? problemIn("defaults", defaults);
  const targets = spec.targetRefs.map(({ kind, name, sectionName }) =>
    targetKey(keyFor(kind as Kind, metadata.namespace ?? "", name), sectionName),
  );
  return {
    key: keyOf(policy),
    rank: ageRank(metadata),
    targets: [...new Set(targets)],
    ...(defaults === undefined ? {} : { defaults: defaults.settings }),
    ...(overrides === undefined ? {} : { overrides: overrides.settings }),
    ...(invalid === undefined ? {} : { invalid }),
  };
}

function unreadable(problem: string | undefined): Failure | undefined {
  if (problem === undefined) return undefined;
  return { reason: "Invalid", message: `the settings cannot be read, ${problem}` };
}

function problemIn(section: string, result: object | undefined): Failure | undefined {
  if (result === undefined || !("problem" in result)) return undefined;
  return { reason: "Invalid", message: `spec.${section}.${String(result.problem)}` };
}

/** The policy that counts at a target. */
export function policyAt<Settings>(
  target: TargetKey,
  lookup: Lookup,
  { byTarget }: AttachedPolicies<Settings>,
): AttachedPolicy<Settings> | undefined {
  return lookup.first(byTarget, target)?.value;
}
