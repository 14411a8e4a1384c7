/** The policies of mergeway.dev, from what is written to what the plan and their statuses need. */
import { type Key, partsOf } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { BackendItem } from "../../plan/backend.ts";
import { type TargetKey, targetKey, targetParts } from "../foundation/policy-targets.ts";
import { fails, holds, type Verdict } from "../foundation/verdict.ts";
import type { MergedListener } from "../listeners/merge.ts";
import { NO_GATEWAY } from "../routes/compiled-routes.ts";
import type { JudgedListener } from "../verdicts/listener-verdicts.ts";
import type { PolicyVerdict } from "../verdicts/verdicts.ts";
import { type AttachedPolicies, type AttachedPolicy, deriveAttachedPolicies } from "./attached-policies.ts";
import { type AuthenticationSources, hasReferences, resolveCheck } from "./authentication.ts";
import { type AttachedBackendPolicies, backendsProblem } from "./backend-settings.ts";
import { certificateVerdict, type DemandSources } from "./client-certificates.ts";
import { CLIENT_SETTINGS, type ClientPolicies, portsProblem } from "./client-policies.ts";
import { deriveGuardItems, type GuardSources, type Guards } from "./guard-items.ts";
import { deriveAttachedPolicyVerdicts, indexReachedListeners } from "./policy-verdicts.ts";
import { hasBodyReference, type ResponseSetting, resolveBody } from "./settings/direct-response.ts";
import {
  type AttachedTrafficPolicy,
  deriveListenerLevels,
  inapplicable,
  type ListenerLevels,
  referringChecks,
  TRAFFIC_SETTINGS,
  type TrafficPolicies,
} from "./traffic-policies.ts";

export interface OwnPolicies extends Guards {
  readonly trafficPolicies: TrafficPolicies;
  readonly clientPolicies: ClientPolicies;
  readonly backendPolicies: AttachedBackendPolicies;
  readonly listenerLevels: ReadonlyCollection<ListenerLevels>;
}

export interface OwnPolicySources extends GuardSources {
  readonly merged: ReadonlyCollection<MergedListener>;
  readonly backendPolicies: AttachedBackendPolicies;
}

export function deriveOwnPolicies(graph: Graph, sources: OwnPolicySources): OwnPolicies {
  const { trafficPolicies: traffic, clientPolicies: clients } = sources.inputs;
  const trafficPolicies = deriveAttachedPolicies(graph, "traffic policies", traffic, TRAFFIC_SETTINGS);
  const clientPolicies = deriveAttachedPolicies(graph, "client policies", clients, CLIENT_SETTINGS);
  return {
    trafficPolicies,
    clientPolicies,
    backendPolicies: sources.backendPolicies,
    listenerLevels: deriveListenerLevels(graph, sources.merged, trafficPolicies),
    ...deriveGuardItems(graph, trafficPolicies, sources),
  };
}

export function deriveOwnPolicyVerdicts(
  graph: Graph,
  { trafficPolicies, clientPolicies, backendPolicies }: OwnPolicies,
  sources: Omit<OwnPolicySources, "merged" | "backendPolicies"> & {
    readonly judged: ReadonlyCollection<JudgedListener>;
    readonly backendsOfServices: Index<BackendItem>;
  } & Pick<DemandSources, "certificates">,
): ReadonlyCollection<PolicyVerdict> {
  const facts = { ...sources, reached: indexReachedListeners(graph, sources.judged) };
  return graph.union<PolicyVerdict>("verdicts of own policies", [
    deriveAttachedPolicyVerdicts(graph, "traffic policies", trafficPolicies, facts, {
      ofRoute: inapplicable,
      references: (policy, lookup) => referenceVerdict(policy, lookup, sources),
    }),
    deriveAttachedPolicyVerdicts(graph, "client policies", clientPolicies, facts, {
      ofOwner: portsProblem,
      references: (policy, lookup) => certificateVerdict(policy, lookup, sources),
    }),
    deriveAttachedPolicyVerdicts(graph, "own backend policies", backendPolicies, facts, {
      ofOwner: backendsProblem,
    }),
  ]);
}

/** Of a policy that refers to something: whether all of it can be used. */
function referenceVerdict(
  policy: AttachedTrafficPolicy,
  lookup: Lookup,
  sources: AuthenticationSources,
): Verdict | undefined {
  const checks = referringChecks(policy).filter(hasReferences);
  const responses = responseSettings(policy).filter(hasBodyReference);
  if (checks.length + responses.length === 0) return undefined;
  const { namespace } = partsOf(policy.key);
  for (const check of checks) {
    const resolved = resolveCheck(check, { gateway: NO_GATEWAY, namespace }, lookup, sources);
    if ("failure" in resolved) {
      const { reason, message } = resolved.failure;
      return fails("ResolvedRefs", { reason, message: `${check.type}: ${message}` });
    }
  }
  for (const response of responses) {
    const resolved = resolveBody(response, namespace, lookup, sources.inputs);
    if ("failure" in resolved) {
      const { reason, message } = resolved.failure;
      return fails("ResolvedRefs", { reason, message: `directResponse: ${message}` });
    }
  }
  return holds("ResolvedRefs", "ResolvedRefs", "all references resolve");
}

function responseSettings({ overrides, defaults }: AttachedTrafficPolicy): readonly ResponseSetting[] {
  return [overrides, defaults].flatMap((settings) =>
    (settings?.directResponse ?? []).filter((setting) => setting.type === "directResponse"),
  );
}

/** A policy at one of its targets. */
export interface PolicyAtTarget {
  readonly target: TargetKey;
  readonly policy: AttachedPolicy<Readonly<Record<string, unknown>>>;
  /** Whether it is the one that counts there; otherwise it is Conflicted. */
  readonly counts: boolean;
}

/** The policies of an object and of its sections, those first that count. For people who look. */
export function policiesOf(
  object: Key,
  { trafficPolicies, clientPolicies, backendPolicies }: OwnPolicies,
): readonly PolicyAtTarget[] {
  return [
    ...policiesAt(object, clientPolicies),
    ...policiesAt(object, trafficPolicies),
    ...policiesAt(object, backendPolicies),
  ];
}

function policiesAt<Settings extends object>(
  object: Key,
  { byObject, byTarget }: AttachedPolicies<Settings>,
): readonly PolicyAtTarget[] {
  const found = [...(byObject.get(object) ?? [])].flatMap(({ value: policy }) =>
    policy.targets
      .filter((target) => targetParts(target).object === object)
      .map((target) => ({
        target,
        policy: policy as PolicyAtTarget["policy"],
        counts: byTarget.get(target)?.at(0)?.value.key === policy.key,
      })),
  );
  const whole = targetKey(object, undefined);
  return found.sort(
    (a, b) => Number(b.target === whole) - Number(a.target === whole) || Number(b.counts) - Number(a.counts),
  );
}
