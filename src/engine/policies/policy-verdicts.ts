/**
 * What policies say of themselves (GEP-713, PolicyStatus.ancestors), one entry for each target: the
 * Gateway, set or child, for a route each of its parents, for a Service each Gateway that reaches
 * it.
 *
 *   Accepted    the target exists, no older policy has it, and the policy can be applied to it
 *   ResolvedRefs  the Secrets and Services that it refers to can be used; only if it refers to any
 *   Programmed  the policy reaches a listener, and the data plane has confirmed all that it
 *               reaches; for a Service only where the data plane refuses it
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
import type { BackendItem } from "../../plan/backend.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { sharedBackendId } from "../foundation/item-ids.ts";
import { type TargetKey, targetParts } from "../foundation/policy-targets.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import type { Attachment } from "../listeners/attachment.ts";
import { listenerKey } from "../listeners/listeners.ts";
import type { Owner } from "../listeners/owners.ts";
import type { RouteAttachment } from "../routes/route-attachment.ts";
import type { JudgedListener } from "../verdicts/listener-verdicts.ts";
import type { PolicyVerdict } from "../verdicts/verdicts.ts";
import {
  type AttachedPolicies,
  type AttachedPolicy,
  policyAt,
  type SectionedPolicyKind,
} from "./attached-policies.ts";

/** PolicyStatus.ancestors holds at most this many. */
const MAX_ANCESTORS = 16;

export interface PolicyVerdictSources {
  readonly inputs: Inputs;
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly routes: ReadonlyCollection<RouteAttachment>;
  readonly reached: ReachedListeners;
  readonly backendsOfServices: Index<BackendItem>;
}

/**
 * Accepted listeners at `state|place`: whether the data plane has confirmed them, and the Gateway,
 * the owner or the listener itself.
 */
export type ReachedListeners = Index<JudgedListener>;

type ListenerState = "programmed" | "waiting";

export function indexReachedListeners(
  graph: Graph,
  judged: ReadonlyCollection<JudgedListener>,
): ReachedListeners {
  return graph.index("listeners by programming", judged, (key, { accepted, programmed, gateway }) => {
    if (!accepted) return [];
    const owner = key.slice(0, key.lastIndexOf("#"));
    const places = new Set([gateway, owner, key]);
    return [...places].map((place) => ({ at: stateAt(programmed ? "programmed" : "waiting", place) }));
  });
}

function stateAt(state: ListenerState, place: string): string {
  return `${state}|${place}`;
}

/** How many listeners a policy reaches at some places. */
type Reach = Readonly<Record<ListenerState, number>>;

function reachOf(places: readonly string[], lookup: Lookup, reached: ReachedListeners): Reach {
  const count = (state: ListenerState): number =>
    places.reduce((sum, place) => sum + lookup.count(reached, stateAt(state, place)), 0);
  return { programmed: count("programmed"), waiting: count("waiting") };
}

/** Of a kind of policy: why it cannot be applied to a target. */
export interface TargetProblems<Settings> {
  readonly ofOwner?: (
    owner: Owner,
    section: string | undefined,
    policy: AttachedPolicy<Settings>,
  ) => Failure | undefined;
  readonly ofRoute?: (kind: RouteKind, policy: AttachedPolicy<Settings>) => Failure | undefined;
  /** Whether what it refers to can be used; undefined: it refers to nothing. */
  readonly references?: (policy: AttachedPolicy<Settings>, lookup: Lookup) => Verdict | undefined;
}

export function deriveAttachedPolicyVerdicts<Settings>(
  graph: Graph,
  name: string,
  policies: AttachedPolicies<Settings>,
  sources: PolicyVerdictSources,
  problems: TargetProblems<Settings>,
): ReadonlyCollection<PolicyVerdict> {
  return graph.derive<AttachedPolicy<Settings>, PolicyVerdict>(
    `${name} verdicts`,
    policies.policies,
    (key, policy, lookup) => {
      const references = problems.references?.(policy, lookup);
      const ancestors = policy.targets.flatMap((target) =>
        targetEntries(target, { policy, policies, problems, references }, lookup, sources),
      );
      if (ancestors.length === 0) return undefined;
      return {
        type: "policy",
        generation: generationOf(key, lookup, sources.inputs),
        ancestors: aggregated(ancestors),
      };
    },
  );
}

const INPUT_OF_KIND = {
  TrafficPolicy: "trafficPolicies",
  ClientPolicy: "clientPolicies",
  BackendPolicy: "backendPolicies",
} as const satisfies Record<SectionedPolicyKind, keyof Inputs>;

function generationOf(key: Key, lookup: Lookup, inputs: Inputs): number {
  const source = inputs[INPUT_OF_KIND[kindOf(key) as SectionedPolicyKind]];
  return (
    lookup.get<{ readonly metadata: { readonly generation?: number } }>(source, key)?.metadata.generation ?? 0
  );
}

interface Judged<Settings> {
  readonly policy: AttachedPolicy<Settings>;
  readonly policies: AttachedPolicies<Settings>;
  readonly references: Verdict | undefined;
  readonly problems: TargetProblems<Settings>;
}

type Entry = PolicyVerdict["ancestors"][number];

function targetEntries<Settings>(
  target: TargetKey,
  judged: Judged<Settings>,
  lookup: Lookup,
  sources: PolicyVerdictSources,
): readonly Entry[] {
  const { object } = targetParts(target);
  if (kindOf(object) === "Service") return serviceEntries(target, judged, lookup, sources);
  return ROUTE_KINDS.includes(kindOf(object) as RouteKind)
    ? routeEntries(target, judged, lookup, sources)
    : ownerEntries(target, judged, lookup, sources);
}

function ownerEntries<Settings>(
  target: TargetKey,
  judged: Judged<Settings>,
  lookup: Lookup,
  { inputs, attachments, reached }: PolicyVerdictSources,
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
    ? (judged.problems.ofOwner?.(owner, section, judged.policy) ?? sharedProblem(target, judged, lookup))
    : noSection(object, "listener", section);
  const place = section === undefined ? object : listenerKey(object, section);
  return [{ ancestorRef, conditions: conditionsOf(problem, reachOf([place], lookup, reached), judged) }];
}

function routeEntries<Settings>(
  target: TargetKey,
  judged: Judged<Settings>,
  lookup: Lookup,
  { inputs, routes, reached }: PolicyVerdictSources,
): readonly Entry[] {
  const { object, section } = targetParts(target);
  const route = lookup.get(inputs.routes, object);
  if (route === undefined)
    return [{ ancestorRef: referenceTo(object, section), conditions: [missing(object)] }];
  const rules = (route.spec.rules ?? []) as readonly { readonly name?: string }[];
  const isRule = section === undefined || rules.some(({ name }) => name === section);
  const problem = isRule
    ? (judged.problems.ofRoute?.(route.kind, judged.policy) ?? sharedProblem(target, judged, lookup))
    : noSection(object, "rule", section);
  const { namespace } = partsOf(object);
  return (lookup.get(routes, object)?.parents ?? []).map(({ ref, bindings }) => {
    const reach = reachOf(
      bindings.map(({ listener }) => listener),
      lookup,
      reached,
    );
    return { ancestorRef: { namespace, ...ref }, conditions: conditionsOf(problem, reach, judged) };
  });
}

/** One for each Gateway that reaches the Service. */
function serviceEntries<Settings>(
  target: TargetKey,
  judged: Judged<Settings>,
  lookup: Lookup,
  { inputs, backendsOfServices }: PolicyVerdictSources,
): readonly Entry[] {
  const { object, section } = targetParts(target);
  const service = lookup.get(inputs.services, object);
  if (service === undefined)
    return [{ ancestorRef: referenceTo(object, section), conditions: [missing(object)] }];
  const isPort = section === undefined || service.spec?.ports?.some(({ name }) => name === section) === true;
  const problem = isPort ? sharedProblem(target, judged, lookup) : noSection(object, "port", section);
  const items = [...(lookup.get(backendsOfServices, object) ?? [])];
  // What is refused of a route with a policy of its own is that route's concern.
  const isRefused = ({ key }: { readonly key: string }): boolean =>
    sharedBackendId(key) === key && lookup.get(inputs.reports, key)?.state === "rejected";
  return [...new Set(items.map(({ value }) => value.gateway))].sort().map((gateway) => {
    const refused = items.some((item) => item.value.gateway === gateway && isRefused(item));
    const conditions = problem === undefined ? [ACCEPTED] : [fails("Accepted", problem)];
    return {
      ancestorRef: referenceTo(`Gateway/${gateway}`, undefined),
      conditions: refused ? [...conditions, REFUSED] : conditions,
    };
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

const REFUSED: Verdict = fails("Programmed", {
  reason: "Refused",
  message:
    "the data plane refuses the configuration of a backend of the policy: requests for it are answered with 500",
});

const NO_LISTENERS: Verdict = fails("Programmed", {
  reason: "NoListeners",
  message: "the policy reaches no accepted listener",
});

function conditionsOf(
  problem: Failure | undefined,
  reach: Reach,
  { references }: { readonly references: Verdict | undefined },
): readonly Verdict[] {
  if (problem !== undefined) return [fails("Accepted", problem)];
  return [ACCEPTED, ...(references === undefined ? [] : [references]), programmedBy(reach)];
}

function programmedBy({ programmed, waiting }: Reach): Verdict {
  if (waiting === 0) return programmed === 0 ? NO_LISTENERS : PROGRAMMED;
  const message = `${waiting} ${waiting === 1 ? "listener waits" : "listeners wait"} for the data plane`;
  return fails("Programmed", { reason: "Pending", message });
}

/**
 * One entry for each ancestor: sections of one route have the same parents, and what is wrong with
 * one of them is said. At most as many as the API has room for, what is wrong first.
 */
function aggregated(entries: readonly Entry[]): readonly Entry[] {
  const byAncestor = new Map<string, Entry>();
  for (const entry of entries) {
    const ancestor = JSON.stringify(entry.ancestorRef);
    const known = byAncestor.get(ancestor);
    if (known === undefined || severity(entry) > severity(known)) byAncestor.set(ancestor, entry);
  }
  const all = [...byAncestor.values()];
  return all.length <= MAX_ANCESTORS
    ? all
    : all.toSorted((a, b) => severity(b) - severity(a)).slice(0, MAX_ANCESTORS);
}

function severity({ conditions }: Entry): number {
  const fault = conditions.find(({ status }) => status !== "True");
  return fault === undefined ? 0 : fault.type === "Accepted" ? 2 : 1;
}

function missing(object: Key): Verdict {
  const { kind, name } = partsOf(object);
  const message = `${kind} ${name} does not exist in the policy's namespace`;
  return fails("Accepted", { reason: "TargetNotFound", message });
}

function noSection(object: Key, what: "listener" | "rule" | "port", section: string | undefined): Failure {
  const { kind, name } = partsOf(object);
  return { reason: "TargetNotFound", message: `${kind} ${name} has no ${what} ${section}` };
}

function referenceTo(object: Key, section: string | undefined): ParentReference {
  const { kind, namespace, name } = partsOf(object);
  const group = GROUP_OF_KIND[kind as Kind];
  return { group, kind, namespace, name, ...(section === undefined ? {} : { sectionName: section }) };
}
