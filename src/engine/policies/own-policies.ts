/** The policies of mergeway.dev, from what is written to what the plan and their statuses need. */
import type { Key } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { GuardItem } from "../../plan/guard.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { type TargetKey, targetKey, targetParts } from "../foundation/policy-targets.ts";
import type { Attachment } from "../listeners/attachment.ts";
import type { MergedListener } from "../listeners/merge.ts";
import type { RouteAttachment } from "../routes/route-attachment.ts";
import type { JudgedListener } from "../verdicts/listener-verdicts.ts";
import type { PolicyVerdict } from "../verdicts/verdicts.ts";
import { type AttachedPolicies, type AttachedPolicy, deriveAttachedPolicies } from "./attached-policies.ts";
import { CLIENT_SETTINGS, type ClientPolicies, portsProblem } from "./client-policies.ts";
import { deriveGuardItems } from "./guard-items.ts";
import { deriveAttachedPolicyVerdicts, indexReachedListeners } from "./policy-verdicts.ts";
import {
  deriveListenerLevels,
  inapplicable,
  type ListenerLevels,
  TRAFFIC_SETTINGS,
  type TrafficPolicies,
} from "./traffic-policies.ts";

export interface OwnPolicies {
  readonly trafficPolicies: TrafficPolicies;
  readonly clientPolicies: ClientPolicies;
  readonly listenerLevels: ReadonlyCollection<ListenerLevels>;
  readonly guards: ReadonlyCollection<GuardItem>;
}

export interface OwnPolicySources {
  readonly inputs: Inputs;
  readonly merged: ReadonlyCollection<MergedListener>;
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly routes: ReadonlyCollection<RouteAttachment>;
}

export function deriveOwnPolicies(graph: Graph, sources: OwnPolicySources): OwnPolicies {
  const { trafficPolicies: traffic, clientPolicies: clients } = sources.inputs;
  const trafficPolicies = deriveAttachedPolicies(graph, "traffic policies", traffic, TRAFFIC_SETTINGS);
  const clientPolicies = deriveAttachedPolicies(graph, "client policies", clients, CLIENT_SETTINGS);
  return {
    trafficPolicies,
    clientPolicies,
    listenerLevels: deriveListenerLevels(graph, sources.merged, trafficPolicies),
    guards: deriveGuardItems(graph, trafficPolicies, sources),
  };
}

export function deriveOwnPolicyVerdicts(
  graph: Graph,
  { trafficPolicies, clientPolicies }: OwnPolicies,
  sources: Omit<OwnPolicySources, "merged"> & { readonly judged: ReadonlyCollection<JudgedListener> },
): ReadonlyCollection<PolicyVerdict> {
  const facts = { ...sources, reached: indexReachedListeners(graph, sources.judged) };
  return graph.union<PolicyVerdict>("verdicts of own policies", [
    deriveAttachedPolicyVerdicts(graph, "traffic policies", trafficPolicies, facts, {
      ofRoute: inapplicable,
    }),
    deriveAttachedPolicyVerdicts(graph, "client policies", clientPolicies, facts, { ofOwner: portsProblem }),
  ]);
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
  { trafficPolicies, clientPolicies }: OwnPolicies,
): readonly PolicyAtTarget[] {
  return [...policiesAt(object, clientPolicies), ...policiesAt(object, trafficPolicies)];
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
