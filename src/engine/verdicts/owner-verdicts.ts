/**
 * Conditions of every kind that carries listeners:
 *
 * - A set is Accepted when its Gateway takes it and at least one of its entries is valid (GEP-1713,
 *   ListenerSet Conditions). Its conditions summarise its own entries only.
 * - A Gateway summarises its own listeners (GEP-1713, Gateway Conditions) and those of its child
 *   Gateways (GEP-1713 (provisional), Gateway Conditions), never those of its sets.
 * - A child Gateway summarises its own listeners, within what its parent allows.
 *
 * A Gateway and what is attached to it never contradict each other: one valid listener anywhere in
 * the merged list makes the Gateway accepted; with none, all of them say that it is not
 * (`acceptance.ts`).
 */
import type { Gateway } from "../../api/gateway.ts";
import type { Key } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { InfrastructureFact, Inputs } from "../foundation/inputs.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import { type Attachment, PARENT_NOT_ACCEPTED } from "../listeners/attachment.ts";
import type { GatewayReferences } from "../listeners/gateway-references.ts";
import type { GatewayState } from "../listeners/gateways.ts";
import { listenerKey } from "../listeners/listeners.ts";
import type { MergedListener } from "../listeners/merge.ts";
import type { Owner } from "../listeners/owners.ts";
import { type Acceptance, deriveAcceptance, isRejected } from "./acceptance.ts";
import { isTrue, type JudgedListener, programmedReason } from "./listener-verdicts.ts";
import { withReplicas } from "./replica-lag.ts";
import type { OwnerVerdict } from "./verdicts.ts";

export interface OwnerSources {
  readonly inputs: Inputs;
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly merged: ReadonlyCollection<MergedListener>;
  readonly judged: ReadonlyCollection<JudgedListener>;
  readonly states: ReadonlyCollection<GatewayState>;
  readonly references: ReadonlyCollection<GatewayReferences>;
}

type Sources = OwnerSources & { readonly acceptance: Acceptance };

export function deriveOwnerVerdicts(graph: Graph, given: OwnerSources): ReadonlyCollection<OwnerVerdict> {
  const { attachments } = given;
  const sources: Sources = { ...given, acceptance: deriveAcceptance(graph, given) };
  const sets = graph.derive("set verdicts", attachments, (_key, attachment, lookup) =>
    attachment.owner.role === "set" ? judgeSet(attachment, lookup, sources) : undefined,
  );
  const children = graph.derive("child verdicts", attachments, (_key, attachment, lookup) =>
    attachment.owner.role === "child" ? judgeChild(attachment, lookup, sources) : undefined,
  );
  const counts = countDependants(graph, attachments, sets, children);
  const roots = graph.derive("gateway verdicts", attachments, (_key, attachment, lookup) =>
    attachment.owner.role === "root" ? judgeRoot(attachment, lookup, sources, counts) : undefined,
  );
  return graph.union("owner verdicts", [sets, children, roots]);
}

interface Counts {
  /** Accepted sets by Gateway. */
  readonly accepted: Index<OwnerVerdict>;
  /** XListenerSets that name a Gateway, accepted or not. */
  readonly experimental: Index<Attachment>;
  /** Attached children with a listener that is not valid, by parent. */
  readonly brokenChildren: Index<OwnerVerdict>;
}

function countDependants(
  graph: Graph,
  attachments: ReadonlyCollection<Attachment>,
  sets: ReadonlyCollection<OwnerVerdict>,
  children: ReadonlyCollection<OwnerVerdict>,
): Counts {
  return {
    accepted: graph.index("accepted sets by gateway", sets, (_key, { conditions, gateway }) =>
      isTrue(conditions, "Accepted") ? [{ at: gateway }] : [],
    ),
    experimental: graph.index("experimental sets by gateway", attachments, (_key, { owner }) =>
      owner.kind === "XListenerSet" && owner.gateway !== undefined ? [{ at: owner.gateway }] : [],
    ),
    brokenChildren: graph.index("broken children by parent", children, (_key, { conditions, gateway }) =>
      conditions.some(({ reason }) => reason === "ListenersNotValid") ? [{ at: gateway }] : [],
    ),
  };
}

function judgeSet({ owner, problem, orphan }: Attachment, lookup: Lookup, sources: Sources): OwnerVerdict {
  const listeners =
    problem === undefined ? judgedListeners(owner, lookup, sources) : refusedListeners(owner, problem);
  const generation = lookup.get(sources.inputs.sets, owner.key)?.metadata.generation ?? 0;
  const base = {
    type: "set",
    gateway: owner.gateway ?? "",
    generation,
    listeners: listeners.map(({ verdict }) => verdict),
    ...(orphan ? { orphan } : {}),
  } as const;
  if (problem !== undefined)
    return { ...base, conditions: [fails("Accepted", problem), fails("Programmed", problem)] };
  const valid = listeners.filter((listener) => listener.accepted);
  const invalid = listeners.filter((listener) => !listener.accepted);
  if (valid.length === 0) {
    const failure = isRejected(base.gateway, lookup, sources.acceptance)
      ? parentNotAccepted(invalid)
      : notValid(invalid);
    return { ...base, conditions: [fails("Accepted", failure), fails("Programmed", failure)] };
  }
  // The reason stays Accepted when only some entries are invalid (GEP-1713, Conformance Details,
  // scenario 6).
  const message =
    invalid.length === 0 ? "the set is accepted" : `the set is accepted; ${notValid(invalid).message}`;
  return { ...base, conditions: [holds("Accepted", "Accepted", message), programmedVerdict(valid)] };
}

function judgeChild({ owner, problem }: Attachment, lookup: Lookup, sources: Sources): OwnerVerdict {
  const listeners =
    problem === undefined ? judgedListeners(owner, lookup, sources) : refusedListeners(owner, problem);
  const generation = lookup.get(sources.inputs.gateways, owner.key)?.metadata.generation ?? 0;
  const parent =
    owner.gateway === undefined ? undefined : lookup.get(sources.inputs.infrastructure, owner.gateway);
  const base = {
    type: "gateway",
    gateway: owner.gateway ?? "",
    generation,
    listeners: listeners.map(({ verdict }) => verdict),
    addresses: problem === undefined ? (parent?.addresses ?? []) : [],
    attachedListenerSets: 0,
  } as const;
  if (problem !== undefined) {
    return { ...base, conditions: [fails("Accepted", problem), fails("Programmed", asProgrammed(problem))] };
  }
  if (!listeners.some(({ accepted }) => accepted) && isRejected(base.gateway, lookup, sources.acceptance)) {
    const failure = parentNotAccepted(listeners);
    return { ...base, conditions: [fails("Accepted", failure), fails("Programmed", asProgrammed(failure))] };
  }
  const infrastructure = parent?.problem && { ...PARENT_NOT_PROGRAMMED, reason: parent.problem.reason };
  return { ...base, conditions: listenersConditions(listeners, { infrastructure }) };
}

/** What is wrong with the parent's infrastructure is for the parent's owner. */
const PARENT_NOT_PROGRAMMED = { message: "the parent Gateway is not programmed" };

function judgeRoot(attachment: Attachment, lookup: Lookup, sources: Sources, counts: Counts): OwnerVerdict {
  const { owner, problem } = attachment;
  const gateway: Gateway | undefined = lookup.get(sources.inputs.gateways, owner.key);
  const listeners =
    problem === undefined ? judgedListeners(owner, lookup, sources) : refusedListeners(owner, problem);
  const infrastructure: InfrastructureFact | undefined = lookup.get(sources.inputs.infrastructure, owner.key);
  const accepted = lookup.count(counts.accepted, owner.key);
  const references = lookup.get(sources.references, owner.key);
  const own =
    problem === undefined
      ? listenersConditions(listeners, {
          infrastructure: infrastructure?.problem,
          brokenChildren: lookup.count(counts.brokenChildren, owner.key),
          // Looked at only where no listener of its own decides.
          elsewhere: () => lookup.first(sources.acceptance.accepted, owner.key)?.value,
        })
      : [fails("Accepted", problem), fails("Programmed", asProgrammed(problem))];
  return {
    type: "gateway",
    gateway: owner.key,
    generation: gateway?.metadata.generation ?? 0,
    listeners: listeners.map(({ verdict }) => verdict),
    addresses: problem === undefined ? (infrastructure?.addresses ?? []) : [],
    attachedListenerSets: accepted,
    conditions: [
      ...withReplicas(own, lookup.get(sources.inputs.replicas, owner.key)),
      ...resolvedRefs(gateway, references),
      ...insecureFrontend(gateway),
      ...attachedListenerSets(owner.key, accepted, lookup, sources, counts),
    ],
  };
}

/** A Gateway says ResolvedRefs only when it has references of its own. */
function resolvedRefs(
  gateway: Gateway | undefined,
  references: GatewayReferences | undefined,
): readonly Verdict[] {
  if (gateway?.spec.tls?.backend?.clientCertificateRef === undefined) return [];
  return [
    references?.unresolved === undefined
      ? holds("ResolvedRefs", "ResolvedRefs", "all references resolve")
      : fails("ResolvedRefs", references.unresolved),
  ];
}

/**
 * Warns that clients without a valid certificate are let in. The condition is absent otherwise
 * (GatewayConditionInsecureFrontendValidationMode).
 */
function insecureFrontend(gateway: Gateway | undefined): readonly Verdict[] {
  const frontend = gateway?.spec.tls?.frontend;
  const everywhere = [frontend?.default, ...(frontend?.perPort ?? []).map(({ tls }) => tls)];
  if (!everywhere.some((tls) => tls?.validation?.mode === "AllowInsecureFallback")) return [];
  const message = "spec.tls.frontend lets in clients without a valid certificate";
  return [holds("InsecureFrontendValidationMode", "ConfigurationChanged", message)];
}

/**
 * GEP-1713 (experimental), Gateway Conditions. The condition is written only where somebody uses
 * the experimental kind.
 */
function attachedListenerSets(
  key: Key,
  accepted: number,
  lookup: Lookup,
  { states }: Sources,
  counts: Counts,
): readonly Verdict[] {
  if (lookup.count(counts.experimental, key) === 0) return [];
  const type = "AttachedListenerSets";
  if (!lookup.get(states, key)?.declaresAllowedListeners) {
    return [
      { type, status: "Unknown", reason: "NotConfigured", message: "spec.allowedListeners is not set" },
    ];
  }
  return accepted > 0
    ? [holds(type, "ListenersAttached", `attached sets of listeners: ${accepted}`)]
    : [fails(type, { reason: "NoListenersAttached", message: "no set with a valid listener is attached" })];
}

interface Surroundings {
  readonly infrastructure: Failure | undefined;
  /** Attached children with a listener that is not valid. */
  readonly brokenChildren?: number;
  /** The accepted listener of an attached set or child that is closest to being served. */
  readonly elsewhere?: () => JudgedListener | undefined;
}

/**
 * Accepted and Programmed of a Gateway, from its listeners. A Gateway without listeners of its own
 * is a valid place for others'.
 */
function listenersConditions(
  listeners: readonly JudgedListener[],
  { infrastructure, brokenChildren = 0, elsewhere }: Surroundings,
): readonly Verdict[] {
  const invalid = listeners.filter((listener) => !listener.accepted);
  const valid = listeners.filter((listener) => listener.accepted);
  const other = listeners.length > 0 && valid.length === 0 ? elsewhere?.() : undefined;
  if (listeners.length > 0 && valid.length === 0 && other === undefined) {
    const failure = notValid(invalid);
    return [fails("Accepted", failure), fails("Programmed", { ...failure, reason: "Invalid" })];
  }
  const accepted =
    invalid.length > 0
      ? holds("Accepted", "ListenersNotValid", `${notValid(invalid).message}; ${whoIsAccepted(valid)}`)
      : brokenChildren > 0
        ? holds("Accepted", "ListenersNotValid", "a listener of a child Gateway is not valid")
        : holds("Accepted", "Accepted", "the Gateway is accepted");
  if (infrastructure !== undefined) return [accepted, fails("Programmed", infrastructure)];
  if (other !== undefined) return [accepted, programmedElsewhere(other)];
  return [accepted, valid.length === 0 ? OWNER_PROGRAMMED : programmedVerdict(valid)];
}

/** Names only listeners of the Gateway itself. */
function whoIsAccepted(own: readonly JudgedListener[]): string {
  return own.length === 0 ? "a listener of an attached resource is accepted" : `accepted: ${namesOf(own)}`;
}

function programmedElsewhere(best: JudgedListener): Verdict {
  if (best.programmed) return OWNER_PROGRAMMED;
  return fails("Programmed", {
    reason: programmedReason(best) === "Pending" ? "Pending" : "Invalid",
    message: "no listener of an attached resource is served",
  });
}

export const OWNER_PROGRAMMED: Verdict = holds(
  "Programmed",
  "Programmed",
  "the data plane serves all that is valid",
);

/**
 * Programmed as soon as one valid listener is served; each listener that is not has its own
 * condition.
 */
function programmedVerdict(valid: readonly JudgedListener[]): Verdict {
  const waiting = valid.filter((listener) => !listener.programmed);
  if (waiting.length < valid.length) return OWNER_PROGRAMMED;
  const why = waiting[0] && programmedReason(waiting[0]);
  return fails("Programmed", {
    reason: why === "Pending" ? "Pending" : "Invalid",
    message: `not served: ${namesOf(waiting)}`,
  });
}

function notValid(listeners: readonly JudgedListener[]): Failure {
  return {
    reason: "ListenersNotValid",
    message: `not valid: ${namesOf(listeners)}`,
  };
}

/** For a set or child that has no valid listener while the Gateway has none either. */
function parentNotAccepted(listeners: readonly JudgedListener[]): Failure {
  const { reason, message } = PARENT_NOT_ACCEPTED;
  return { reason, message: `${message}: it has no valid listener; ${notValid(listeners).message}` };
}

function namesOf(listeners: readonly JudgedListener[]): string {
  return listeners.map(({ verdict }) => verdict.name).join(", ");
}

/** Programmed has fewer reasons than Accepted. */
function asProgrammed(problem: Failure): Failure {
  return { reason: "Invalid", message: problem.message };
}

function judgedListeners(owner: Owner, lookup: Lookup, { judged }: Sources): readonly JudgedListener[] {
  return owner.listeners.flatMap(({ name }) => lookup.get(judged, listenerKey(owner.key, name)) ?? []);
}

/**
 * Entries of an owner that is not attached belong to no Gateway: nothing attaches to them
 * (cloudflare-tunnel-gateway-controller, ListenerSet, AttachedRoutes).
 */
function refusedListeners(owner: Owner, problem: Failure): readonly JudgedListener[] {
  const conditions: readonly Verdict[] = [
    fails("Accepted", problem),
    {
      type: "Conflicted",
      status: "False",
      reason: "NoConflicts",
      message: "the listener is not evaluated while its resource is not accepted",
    },
    {
      type: "ResolvedRefs",
      status: "Unknown",
      reason: "Pending",
      message: "the listener is not evaluated while its resource is not accepted",
    },
    fails("Programmed", problem),
  ];
  return owner.listeners.map(({ name, port }) => ({
    verdict: { name, port: port ?? 0, supportedKinds: [], attachedRoutes: 0, conditions },
    gateway: owner.gateway ?? "",
    accepted: false,
    programmed: false,
  }));
}
