import type { Condition, ObjectMeta } from "../../api/metadata.ts";
import type { Verdict } from "../../engine/foundation/verdict.ts";

/** Conditions of the object as it is now: what is said of an earlier generation may be over. */
export function currentVerdicts(
  { generation }: ObjectMeta,
  conditions: readonly Condition[] = [],
): readonly Verdict[] {
  return conditions
    .filter(({ observedGeneration }) => observedGeneration === generation)
    .map(({ type, status, reason, message }) => ({ type, status, reason, message }));
}
