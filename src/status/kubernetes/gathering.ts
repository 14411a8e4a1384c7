/**
 * Which changes of a status are worth a write of their own. A condition whose status or reason
 * changes is written at once. What would soon be written again waits for at most `gatherMs`:
 *   counts       attachedRoutes, attachedListenerSets; words of a condition that says the same
 *   unfinished   Programmed=False with reason Pending: the data plane is about to confirm it
 * A change that comes back to what was written meanwhile is not written at all.
 */

import { isDeepStrictEqual } from "node:util";
import type { Condition } from "../../api/metadata.ts";
import { listOf, type Status } from "./merge-status.ts";

export type WriteUrgency = "final" | "unfinished" | "counts";

/** How urgent it is to write these fields over what the object says. */
export function writeUrgencyOf(before: Status | undefined, fields: Status): WriteUrgency {
  const changed = Object.keys(fields);
  if (changed.every((field) => isDeepStrictEqual(core(field, before?.[field]), core(field, fields[field])))) {
    return "counts";
  }
  return turnsPending(before, fields) ? "unfinished" : "final";
}

interface Holder {
  readonly name?: string;
  readonly conditions?: unknown;
}

/** What of a field is worth a write at once. */
function core(field: string, value: unknown): unknown {
  switch (field) {
    case "attachedListenerSets":
      return undefined;
    case "conditions":
      return coreConditions(value);
    case "listeners":
    case "parents":
    case "ancestors":
      return listOf<object>(value).map((each) => ({
        ...each,
        attachedRoutes: undefined,
        conditions: coreConditions((each as Holder).conditions),
      }));
    default:
      return value;
  }
}

function coreConditions(conditions: unknown): unknown {
  return listOf<Condition>(conditions).map(({ type, status, reason, observedGeneration }) => ({
    type,
    status,
    reason,
    observedGeneration,
  }));
}

/**
 * Whether the Gateway, the set or one of its listeners would say that it is pending, and does not
 * say so yet.
 */
function turnsPending(before: Status | undefined, fields: Status): boolean {
  if (isPending(fields) && !isPending(before)) return true;
  const earlier = listOf<Holder>(before?.["listeners"]);
  return listOf<Holder>(fields["listeners"]).some(
    (listener) => isPending(listener) && !isPending(earlier.find(({ name }) => name === listener.name)),
  );
}

function isPending(holder: Holder | undefined): boolean {
  return listOf<Condition>(holder?.conditions).some(
    ({ type, status, reason }) => type === "Programmed" && status === "False" && reason === "Pending",
  );
}
