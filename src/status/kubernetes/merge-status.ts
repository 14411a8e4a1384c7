/**
 * Our part of a status laid over what the object holds. Whatever is not ours stays exactly as it is
 * and where it is: conditions of types that we do not write, and entries of other controllers among
 * the parents of a route or the ancestors of a policy.
 */
import { isDeepStrictEqual } from "node:util";
import type { Condition } from "../../api/metadata.ts";
import { sameReference } from "../render.ts";

export type Status = Readonly<Record<string, unknown>>;

/** Condition types that Mergeway is responsible for on everything it writes to. */
const OWN_TYPES: ReadonlySet<string> = new Set([
  "Accepted",
  "AttachedListenerSets",
  "Conflicted",
  "InsecureFrontendValidationMode",
  "OverlappingTLSConfig",
  "PartiallyInvalid",
  "Programmed",
  "ResolvedRefs",
  "SupportedVersion",
]);

export function isOwnType(type: string): boolean {
  return OWN_TYPES.has(type) || type.startsWith("mergeway.dev/");
}

/** How many entries the API allows. */
const MOST_ENTRIES: Readonly<Record<string, number>> = { parents: 32, ancestors: 16 };

/**
 * The fields of the status that must change, with their whole new values; none when all is as it
 * should be.
 */
export function changedFields(current: Status | undefined, rendered: Status, controllerName: string): Status {
  const changed: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(rendered)) {
    const before = current?.[field];
    const after = mergeField(field, before, value, controllerName);
    if (!isDeepStrictEqual(before, after) && !(before === undefined && isEmptyList(after))) {
      changed[field] = after;
    }
  }
  return changed;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function mergeField(field: string, before: unknown, value: unknown, controllerName: string): unknown {
  switch (field) {
    case "conditions":
      return mergeConditions(listOf(before), listOf(value));
    case "listeners":
      return mergeListeners(listOf(before), listOf(value));
    case "parents":
    case "ancestors":
      return mergeEntries(listOf(before), listOf(value), field, controllerName);
    default:
      return value;
  }
}

/**
 * Ours in the places where they were, new ones at the end; those that no longer apply are left out.
 */
export function mergeConditions(
  before: readonly Condition[],
  own: readonly Condition[],
): readonly Condition[] {
  const kept = before.flatMap((condition) => {
    const mine = own.find(({ type }) => type === condition.type);
    if (mine !== undefined) return [mine];
    return isOwnType(condition.type) ? [] : [condition];
  });
  return [...kept, ...own.filter(({ type }) => !before.some((condition) => condition.type === type))];
}

interface ListenerEntry {
  readonly name: string;
  readonly conditions?: readonly Condition[];
}

function mergeListeners(
  before: readonly ListenerEntry[],
  own: readonly ListenerEntry[],
): readonly ListenerEntry[] {
  return own.map((listener) => {
    const previous = before.find(({ name }) => name === listener.name);
    const conditions = mergeConditions(previous?.conditions ?? [], listener.conditions ?? []);
    return { ...listener, conditions };
  });
}

/** One element of `parents` or `ancestors`. */
interface ControllerEntry {
  readonly controllerName: string;
  readonly conditions?: readonly Condition[];
  readonly [reference: string]: unknown;
}

function mergeEntries(
  before: readonly ControllerEntry[],
  own: readonly ControllerEntry[],
  field: string,
  controllerName: string,
): readonly ControllerEntry[] {
  const reference = field === "parents" ? "parentRef" : "ancestorRef";
  const placed = new Set<ControllerEntry>();
  const kept = before.flatMap((entry) => {
    if (entry.controllerName !== controllerName) return [entry];
    const mine = own.find((each) => !placed.has(each) && sameReference(each[reference], entry[reference]));
    if (mine === undefined) return [];
    placed.add(mine);
    return [{ ...mine, conditions: mergeConditions(entry.conditions ?? [], mine.conditions ?? []) }];
  });
  // Entries of others are never pushed out, even where the list is full.
  return [...kept, ...own.filter((entry) => !placed.has(entry))].slice(0, MOST_ENTRIES[field]);
}

/** Whether there is an entry of ours in the status of a route or policy. */
export function hasOwnEntry(status: Status | undefined, controllerName: string): boolean {
  const entries = [...listOf(status?.["parents"]), ...listOf(status?.["ancestors"])] as ControllerEntry[];
  return entries.some((entry) => entry.controllerName === controllerName);
}

/**
 * Whether anybody has written conditions: those that the CRD fills in carry the beginning of time.
 */
export function isWritten(status: Status | undefined): boolean {
  return listOf<Condition>(status?.["conditions"]).some(
    ({ lastTransitionTime }) => lastTransitionTime !== undefined && !lastTransitionTime.startsWith("1970-"),
  );
}

export function listOf<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [];
}
