/**
 * What policies say of themselves (GEP-713, PolicyStatus.ancestors), one entry for each target: the
 * Gateway, set or child, and for a route each of its parents.
 *
 *   Accepted    the target exists, no older policy has it, and the policy can be applied to it
 *   Programmed  the data plane has confirmed every listener that the policy reaches
 *
 * Targets of other controllers have no entry.
 */
import { type Key, kindOf, partsOf } from "../../api/key.ts";
import type { ParentReference } from "../../api/references.ts";
import { GROUP_OF_KIND, type Kind, ROUTE_KINDS, type RouteKind } from "../../api/resource.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { type TargetKey, targetParts } from "../foundation/policy-targets.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import type { Attachment } from "../listeners/attachment.ts";
import { listenerKey } from "../listeners/listeners.ts";
import type { Owner } from "../listeners/owners.ts";
import type { RouteAttachment } from "../routes/route-attachment.ts";
import type { JudgedListener } from "../verdicts/listener-verdicts.ts";
import type { PolicyVerdict } from "../verdicts/verdicts.ts";
import { type AttachedPolicies, type AttachedPolicy, policyAt } from "./attached-policies.ts";

/** PolicyStatus.ancestors holds at most this many. */
const MAX_ANCESTORS = 16;

export interface PolicyVerdictSources {
  readonly inputs: Inputs;
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly routes: ReadonlyCollection<RouteAttachment>;
  /** Listeners that are accepted and not yet programmed, by Gateway, owner and listener. */
  readonly waiting: Index<JudgedListener>;
}

export function indexWaitingListeners(
  graph: Graph,
  judged: ReadonlyCollection<JudgedListener>,
): Index<JudgedListener> {
  return graph.index(
    "listeners that are not programmed",
    judged,
    (key, { accepted, programmed, gateway }) => {
      if (!accepted || programmed) return [];
      const owner = key.slice(0, key.lastIndexOf("#"));
      return [...new Set([gateway, owner, key])].map((at) => ({ at }));
    },
  );
}

/** Of a kind of policy: why it cannot be applied to an owner, or to a section of it. */
export type TargetProblem = (owner: Owner, section: string | undefined) => Failure | undefined;

export function deriveAttachedPolicyVerdicts<Settings>(
  graph: Graph,
  name: string,
  policies: AttachedPolicies<Settings>,
  sources: PolicyVerdictSources,
  targetProblem: TargetProblem = () => undefined,
): ReadonlyCollection<PolicyVerdict> {
  return graph.derive<AttachedPolicy<Settings>, PolicyVerdict>(
    `${name} verdicts`,
    policies.policies,
    (key, policy, lookup) => {
      const ancestors = policy.targets.flatMap((target) =>
        targetEntries(target, { policy, policies, targetProblem }, lookup, sources),
      );
      if (ancestors.length === 0) return undefined;
      return {
        type: "policy",
        generation: generationOf(key, lookup, sources.inputs),
        ancestors: ancestors.slice(0, MAX_ANCESTORS),
      };
    },
  );
}

function generationOf(key: Key, lookup: Lookup, { trafficPolicies, clientPolicies }: Inputs): number {
  const source = kindOf(key) === "TrafficPolicy" ? trafficPolicies : clientPolicies;
  return (
    lookup.get<{ readonly metadata: { readonly generation?: number } }>(source, key)?.metadata.generation ?? 0
  );
}

interface Judged<Settings> {
  readonly policy: AttachedPolicy<Settings>;
  readonly policies: AttachedPolicies<Settings>;
  readonly targetProblem: TargetProblem;
}

type Entry = PolicyVerdict["ancestors"][number];

function targetEntries<Settings>(
  target: TargetKey,
  judged: Judged<Settings>,
  lookup: Lookup,
  sources: PolicyVerdictSources,
): readonly Entry[] {
  const { object } = targetParts(target);
  return ROUTE_KINDS.includes(kindOf(object) as RouteKind)
    ? routeEntries(target, judged, lookup, sources)
    : ownerEntries(target, judged, lookup, sources);
}

function ownerEntries<Settings>(
  target: TargetKey,
  judged: Judged<Settings>,
  lookup: Lookup,
  { inputs, attachments, waiting }: PolicyVerdictSources,
): readonly Entry[] {
  const { object, section } = targetParts(target);
  const ancestorRef = referenceTo(object, section);
  const attachment = lookup.get(attachments, object);
  if (attachment === undefined) {
    const exists = lookup.get(inputs.gateways, object) ?? lookup.get(inputs.sets, object);
    return exists === undefined ? [{ ancestorRef, conditions: [missing(object)] }] : [];
  }
  const { owner } = attachment;
  const isListener = section === undefined || owner.listeners.some(({ name }) => name === section);
  const problem = isListener
    ? (judged.targetProblem(owner, section) ?? sharedProblem(target, judged, lookup))
    : noSection(object, "listener", section);
  const waits = lookup.count(waiting, section === undefined ? object : listenerKey(object, section));
  return [{ ancestorRef, conditions: conditionsOf(problem, waits) }];
}

function routeEntries<Settings>(
  target: TargetKey,
  judged: Judged<Settings>,
  lookup: Lookup,
  { inputs, routes, waiting }: PolicyVerdictSources,
): readonly Entry[] {
  const { object, section } = targetParts(target);
  const route = lookup.get(inputs.routes, object);
  if (route === undefined)
    return [{ ancestorRef: referenceTo(object, section), conditions: [missing(object)] }];
  const rules = (route.spec.rules ?? []) as readonly { readonly name?: string }[];
  const isRule = section === undefined || rules.some(({ name }) => name === section);
  const problem = isRule ? sharedProblem(target, judged, lookup) : noSection(object, "rule", section);
  const { namespace } = partsOf(object);
  return (lookup.get(routes, object)?.parents ?? []).map(({ ref, bindings }) => {
    const waits = bindings.reduce((sum, { listener }) => sum + lookup.count(waiting, listener), 0);
    return { ancestorRef: { namespace, ...ref }, conditions: conditionsOf(problem, waits) };
  });
}

/** What any kind of policy can have against any target. */
function sharedProblem<Settings>(
  target: TargetKey,
  { policy, policies }: Judged<Settings>,
  lookup: Lookup,
): Failure | undefined {
  if (policyAt(target, lookup, policies)?.key !== policy.key) {
    const message = `an older ${kindOf(policy.key)} has the same target`;
    return { reason: "Conflicted", message };
  }
  return policy.invalid;
}

const ACCEPTED: Verdict = holds("Accepted", "Accepted", "the policy is accepted");
const PROGRAMMED: Verdict = holds("Programmed", "Programmed", "the data plane applies the policy");

function conditionsOf(problem: Failure | undefined, waits: number): readonly Verdict[] {
  if (problem !== undefined) return [fails("Accepted", problem)];
  if (waits === 0) return [ACCEPTED, PROGRAMMED];
  const message = `${waits} ${waits === 1 ? "listener waits" : "listeners wait"} for the data plane`;
  return [ACCEPTED, fails("Programmed", { reason: "Pending", message })];
}

function missing(object: Key): Verdict {
  const { kind, name } = partsOf(object);
  const message = `${kind} ${name} does not exist in the policy's namespace`;
  return fails("Accepted", { reason: "TargetNotFound", message });
}

function noSection(object: Key, what: "listener" | "rule", section: string | undefined): Failure {
  const { kind, name } = partsOf(object);
  return { reason: "TargetNotFound", message: `${kind} ${name} has no ${what} ${section}` };
}

function referenceTo(object: Key, section: string | undefined): ParentReference {
  const { kind, namespace, name } = partsOf(object);
  const group = GROUP_OF_KIND[kind as Kind];
  return { group, kind, namespace, name, ...(section === undefined ? {} : { sectionName: section }) };
}
