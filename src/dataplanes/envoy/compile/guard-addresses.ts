/** Which clients pass the address lists among the guards of a rule. */

import type { AddressCheck, GuardItem } from "../../../plan/guard.ts";
import type { ItemId } from "../../../plan/plan.ts";
import type { AdmissionShape } from "../messages/guards.ts";
import { type Admission, admissionOf, cidrsOf, readRanges } from "./address-ranges.ts";

/** Undefined: one of them is not in the plan. */
export function guardsOf(
  ids: readonly ItemId[],
  guard: (id: ItemId) => GuardItem | undefined,
): readonly GuardItem[] | undefined {
  const guards = [...new Set(ids)].map(guard);
  return guards.every((item) => item !== undefined) ? guards : undefined;
}

/** Who passes the lists of addresses among the guards; undefined: one cannot be read. */
export function admissionOfChecks(guards: readonly GuardItem[]): Admission | "everybody" | undefined {
  const lists = guards.flatMap(({ check }) => (check.type === "addresses" ? [rangesOf(check)] : []));
  if (lists.length === 0) return "everybody";
  return lists.every((list) => list !== undefined) ? admissionOf(lists) : undefined;
}

function rangesOf(check: AddressCheck): Admission | undefined {
  const deny = readRanges(check.deny ?? []);
  if (check.allow === undefined || deny === undefined) return deny && { deny };
  const allow = readRanges(check.allow);
  return allow && { allow, deny };
}

export function shapeOf({ allow, deny }: Admission): AdmissionShape {
  return { allow: cidrsOf(allow ?? []), deny: cidrsOf(deny), others: allow === undefined };
}
