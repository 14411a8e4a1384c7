/**
 * Conditions of one listener. All four are always written, also when nothing is wrong: monitors
 * flag an absent condition.
 *
 * - Accepted: the listener is valid and holds its port and hostname.
 * - Conflicted: another listener holds them.
 * - ResolvedRefs: its certificates, kinds and CA references resolve.
 * - Programmed: the data plane has reported it as programmed.
 */
import type { Key } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { InfrastructureFact, Inputs } from "../foundation/inputs.ts";
import { certificateId, listenerId, portId } from "../foundation/item-ids.ts";
import type { EngineSettings } from "../foundation/settings.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import { transportOf } from "../listeners/listeners.ts";
import type { MergedListener } from "../listeners/merge.ts";
import { type CompiledRoute, isWhollyDropped } from "../routes/compiled-routes.ts";
import type { ListenerVerdict } from "./verdicts.ts";

export interface JudgedListener {
  readonly verdict: ListenerVerdict;
  /** The Gateway that it merges into. */
  readonly gateway: Key;
  /** False makes its owner ListenersNotValid. */
  readonly accepted: boolean;
  readonly programmed: boolean;
}

export function deriveListenerVerdicts(
  graph: Graph,
  inputs: Inputs,
  sources: {
    readonly merged: ReadonlyCollection<MergedListener>;
    readonly compiled: ReadonlyCollection<CompiledRoute>;
  },
  settings: EngineSettings,
): ReadonlyCollection<JudgedListener> {
  const attached = countRoutes(graph, sources.compiled);
  return graph.derive<MergedListener, JudgedListener>(
    "listener verdicts",
    sources.merged,
    (key, listener, lookup) => {
      const conditions = judge(listener, programmingProblem(listener, lookup, inputs, settings));
      return {
        verdict: {
          name: listener.section,
          port: listener.port,
          supportedKinds: listener.supportedKinds,
          attachedRoutes: lookup.count(attached, key),
          conditions,
          ...(listener.heldBy === undefined ? {} : { heldBy: listener.heldBy }),
        },
        gateway: listener.gateway,
        accepted: isTrue(conditions, "Accepted"),
        programmed: isTrue(conditions, "Programmed"),
      };
    },
  );
}

export function isTrue(conditions: readonly Verdict[], type: string): boolean {
  return conditions.some((condition) => condition.type === type && condition.status === "True");
}

/** Why it is (not) programmed. */
export function programmedReason({ verdict }: JudgedListener): string | undefined {
  return verdict.conditions.find(({ type }) => type === "Programmed")?.reason;
}

/**
 * Routes with Accepted=True at each listener, whatever the listener's own state
 * (ListenerStatus.attachedRoutes).
 */
function countRoutes(graph: Graph, compiled: ReadonlyCollection<CompiledRoute>): Index<CompiledRoute> {
  return graph.index("accepted routes by listener", compiled, (_key, route) =>
    isWhollyDropped(route) ? [] : route.listeners.map((at) => ({ at })),
  );
}

// Shared: most listeners say these four and nothing else.
const ACCEPTED: Verdict = holds("Accepted", "Accepted", "the listener is accepted");
const UNCONFLICTED: Verdict = {
  type: "Conflicted",
  status: "False",
  reason: "NoConflicts",
  message: "no other listener conflicts with this one",
};
const RESOLVED: Verdict = holds("ResolvedRefs", "ResolvedRefs", "all references resolve");
const PROGRAMMED: Verdict = holds("Programmed", "Programmed", "the data plane serves the listener");
const ALL_WELL: readonly Verdict[] = [ACCEPTED, UNCONFLICTED, RESOLVED, PROGRAMMED];

function judge(listener: MergedListener, programming: Failure | undefined): readonly Verdict[] {
  const { conflict, unresolved } = listener;
  const refused = conflict ?? listener.excess ?? listener.refused;
  if (refused === undefined && unresolved === undefined && programming === undefined) return ALL_WELL;
  return [
    refused === undefined ? ACCEPTED : fails("Accepted", refused),
    conflict === undefined ? UNCONFLICTED : { ...fails("Conflicted", conflict), status: "True" },
    unresolved === undefined ? RESOLVED : fails("ResolvedRefs", unresolved),
    programmedVerdict(listener, refused, programming),
  ];
}

function programmedVerdict(
  listener: MergedListener,
  refused: Failure | undefined,
  programming: Failure | undefined,
): Verdict {
  if (listener.conflict !== undefined) return fails("Programmed", listener.conflict);
  if (refused !== undefined) return fails("Programmed", { reason: "Invalid", message: refused.message });
  return programming === undefined ? PROGRAMMED : fails("Programmed", programming);
}

const PENDING: Failure = { reason: "Pending", message: "the data plane has not yet confirmed the listener" };

/** What the data plane says of the items that the listener consists of. */
function programmingProblem(
  listener: MergedListener,
  lookup: Lookup,
  inputs: Inputs,
  settings: EngineSettings,
): Failure | undefined {
  const infrastructure: InfrastructureFact | undefined = lookup.get(inputs.infrastructure, listener.gateway);
  if (infrastructure?.problem !== undefined) {
    return { reason: "Pending", message: "the Gateway is not programmed" };
  }
  if (settings.assumeProgrammed || listener.protocol === undefined) return undefined;
  const ids = [
    portId(listener.gateway, transportOf(listener.protocol), listener.port),
    listenerId(listener.gateway, listener.key),
    ...listener.certificates.map((secret) => certificateId(listener.gateway, secret)),
  ];
  const reports = ids.map((id) => lookup.get(inputs.reports, id));
  const rejected = reports.find((report) => report?.state === "rejected");
  if (rejected !== undefined) {
    return {
      reason: rejected.reason ?? "Invalid",
      message: rejected.message ?? "the data plane has rejected the listener",
    };
  }
  return reports.slice(0, 2).every((report) => report?.state === "programmed") ? undefined : PENDING;
}
