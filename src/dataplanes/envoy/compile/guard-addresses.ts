/** Which clients pass the address lists among the guards of a rule. */

import type { AddressCheck, GuardItem } from "../../../plan/guard.ts";
import type { ItemId } from "../../../plan/plan.ts";
import { type AdmissionShape, routeAdmission } from "../messages/guards.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import { type Admission, admissionOf, cidrsOf, readRanges } from "./address-ranges.ts";

/** Undefined: one of them is not in the plan. */
export function guardsOf(
  ids: readonly ItemId[],
  guard: (id: ItemId) => GuardItem | undefined,
): readonly GuardItem[] | undefined {
  const guards = [...new Set(ids)].map(guard);
  return guards.every((item) => item !== undefined) ? guards : undefined;
}

/** A list of guards, and what comes of the addresses of all of them. */
interface Combination {
  admission?: { readonly of: Admission | "everybody" | undefined };
  readonly longer: WeakMap<GuardItem, Combination>;
}

/**
 * Items are immutable, and a guard stands in the scopes of many hostnames: whatever is made of it
 * is made once, and goes with the item.
 */
const combinations: Combination = { longer: new WeakMap() };
const ranges: WeakMap<AddressCheck, { readonly of: Admission | undefined }> = new WeakMap();
const encoded: WeakMap<Admission, Message<proto.Any>> = new WeakMap();

/** Who passes the lists of addresses among the guards; undefined: one cannot be read. */
export function admissionOfChecks(guards: readonly GuardItem[]): Admission | "everybody" | undefined {
  const lists = guards.filter(({ check }) => check.type === "addresses");
  const known = lists.reduce(longer, combinations);
  known.admission ??= { of: combined(lists) };
  return known.admission.of;
}

function longer(combination: Combination, item: GuardItem): Combination {
  const known = combination.longer.get(item) ?? { longer: new WeakMap() };
  combination.longer.set(item, known);
  return known;
}

function combined(guards: readonly GuardItem[]): Admission | "everybody" | undefined {
  const lists = guards.flatMap(({ check }) => (check.type === "addresses" ? [rangesOf(check)] : []));
  if (lists.length === 0) return "everybody";
  return lists.every((list) => list !== undefined) ? admissionOf(lists) : undefined;
}

function rangesOf(check: AddressCheck): Admission | undefined {
  const known = ranges.get(check) ?? { of: readAdmission(check) };
  ranges.set(check, known);
  return known.of;
}

function readAdmission(check: AddressCheck): Admission | undefined {
  const deny = readRanges(check.deny ?? []);
  if (check.allow === undefined || deny === undefined) return deny && { deny };
  const allow = readRanges(check.allow);
  return allow && { allow, deny };
}

export function shapeOf({ allow, deny }: Admission): AdmissionShape {
  return { allow: cidrsOf(allow ?? []), deny: cidrsOf(deny), others: allow === undefined };
}

/** As configuration of routes. */
export function encodedAdmission(admission: Admission): Message<proto.Any> {
  const known = encoded.get(admission) ?? routeAdmission(shapeOf(admission));
  encoded.set(admission, known);
  return known;
}
