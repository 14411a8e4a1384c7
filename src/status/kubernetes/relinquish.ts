/**
 * The status of a Gateway or set that is not ours any more: what we wrote goes back to what a new
 * object has, the rest stays.
 */
import type { Condition } from "../../api/metadata.ts";
import { listOf, type Status } from "./merge-status.ts";
import { isNothing, type OwnedStatus } from "./ownership.ts";

/** Conditions that the CRDs give to every new object. */
const INITIAL: ReadonlySet<string> = new Set(["Accepted", "Programmed"]);

/** The fields to change; none where nothing is ours. */
export function relinquishedFields(current: Status | undefined, owned: OwnedStatus, now: string): Status {
  if (current === undefined || isNothing(owned)) return {};
  const before = listOf<Condition>(current["conditions"]);
  const conditions = before.flatMap((condition) => {
    if (!owned.conditions.has(condition.type)) return [condition];
    return INITIAL.has(condition.type) ? [pending(condition, now)] : [];
  });
  const listeners = listOf<{ readonly name: string }>(current["listeners"]);
  const left = listeners.filter(({ name }) => !owned.listeners.has(name));
  return {
    ...(owned.conditions.size > 0 && before.some((condition, at) => condition !== conditions[at])
      ? { conditions }
      : {}),
    ...(left.length < listeners.length ? { listeners: left } : {}),
    // null removes a field by a merge patch.
    ...(owned.fields.has("addresses") && listOf(current["addresses"]).length > 0 ? { addresses: null } : {}),
    ...(owned.fields.has("attachedListenerSets") && current["attachedListenerSets"]
      ? { attachedListenerSets: null }
      : {}),
  };
}

function pending(condition: Condition, now: string): Condition {
  if (condition.status === "Unknown" && condition.reason === "Pending") return condition;
  return {
    ...condition,
    status: "Unknown",
    reason: "Pending",
    message: "Waiting for controller",
    lastTransitionTime: condition.status === "Unknown" ? (condition.lastTransitionTime ?? now) : now,
  };
}
