/**
 * Whether a Gateway is accepted because of its listeners:
 *
 * - Rejected: it has listeners of its own, and no listener of the merged list is valid, neither its
 *   own nor one of a ListenerSet, XListenerSet or child Gateway.
 * - Accepted: otherwise. Without listeners of its own it has nothing that could be invalid.
 *
 * "At least one distinct Listener MUST be present, or else the Gateway effectively contains no
 * Listeners, and must be rejected from processing as a whole" (Gateway.spec.listeners, Handling
 * indistinct Listeners). GEP-1713, Gateway Conditions, lets Accepted of a Gateway "reflect the
 * status of the local configuration". Taken literally, a Gateway that serves its sets would be
 * Accepted=False. What is served is the merged list, so the merged list decides.
 *
 * There is no circle: whether a listener is valid never depends on whether its Gateway is accepted
 * for its listeners. Only a set without any valid listener depends on it, so a flip recomputes
 * nothing else.
 */
import type { Key } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Entries } from "../../graph/sorted-entries.ts";
import type { Attachment } from "../listeners/attachment.ts";
import { isServing, type MergedListener } from "../listeners/merge.ts";
import { type JudgedListener, programmedReason } from "./listener-verdicts.ts";

export interface Acceptance {
  readonly attachments: ReadonlyCollection<Attachment>;
  /** Gateways that have a valid listener somewhere in their merged list. */
  readonly valid: ReadonlyCollection<true>;
  /** Accepted listeners by Gateway: those that are programmed first, then those that will be. */
  readonly accepted: Index<JudgedListener>;
}

export function deriveAcceptance(
  graph: Graph,
  sources: {
    readonly attachments: ReadonlyCollection<Attachment>;
    readonly merged: ReadonlyCollection<MergedListener>;
    readonly judged: ReadonlyCollection<JudgedListener>;
  },
): Acceptance {
  const serving = graph.index("valid listeners by gateway", sources.merged, (_key, listener) =>
    isServing(listener) ? [{ at: listener.gateway }] : [],
  );
  return {
    attachments: sources.attachments,
    valid: graph.derive<Entries<unknown>, true>("gateways with a valid listener", serving, (_key, entries) =>
      entries.length > 0 ? true : undefined,
    ),
    accepted: graph.index("accepted listeners by gateway", sources.judged, (_key, judged) =>
      judged.accepted ? [{ at: judged.gateway, sort: progress(judged) }] : [],
    ),
  };
}

/** Whether nothing of the Gateway can be served for want of a valid listener. */
export function isRejected(gateway: Key, lookup: Lookup, { valid, attachments }: Acceptance): boolean {
  if (lookup.get(valid, gateway)) return false;
  return (lookup.get(attachments, gateway)?.owner.listeners.length ?? 0) > 0;
}

function progress(judged: JudgedListener): string {
  if (judged.programmed) return "0";
  return programmedReason(judged) === "Pending" ? "1" : "2";
}
