/**
 * Verdicts as the `status` that an API server holds: conditions with generation and time, per kind.
 * Nothing else makes statuses.
 */
import type { Condition } from "../api/metadata.ts";
import type { Resource } from "../api/resource.ts";
import type { Verdict } from "../engine/foundation/verdict.ts";
import type { ObjectVerdict } from "../engine/verdicts/verdicts.ts";

export interface RenderOptions {
  readonly controllerName: string;
  /** The time of conditions that change now, RFC 3339. */
  readonly now: string;
}

type Status = Readonly<Record<string, unknown>>;

/**
 * The status of an object of ours, given what its status was: times move only when a condition's
 * status does.
 */
export function renderStatus(resource: Resource, verdict: ObjectVerdict, options: RenderOptions): Status {
  const before = ("status" in resource ? resource.status : undefined) as Record<string, unknown> | undefined;
  const at = { generation: verdict.generation, now: options.now };
  switch (verdict.type) {
    case "class":
      return { conditions: conditions(verdict.conditions, conditionsIn(before), at) };
    case "gateway":
      return {
        addresses: verdict.addresses ?? [],
        attachedListenerSets: verdict.attachedListenerSets ?? 0,
        conditions: conditions(verdict.conditions, conditionsIn(before), at),
        listeners: listeners(verdict.listeners, before, at, false),
      };
    case "set":
      return {
        conditions: conditions(verdict.conditions, conditionsIn(before), at),
        listeners: listeners(verdict.listeners, before, at, resource.kind === "XListenerSet"),
      };
    case "route":
      return {
        parents: verdict.parents.map(({ parentRef, conditions: own }) => ({
          parentRef,
          controllerName: options.controllerName,
          conditions: conditions(own, entryIn(before?.["parents"], "parentRef", parentRef, options), at),
        })),
      };
    case "policy":
      return {
        ancestors: verdict.ancestors.map(({ ancestorRef, conditions: own }) => ({
          ancestorRef,
          controllerName: options.controllerName,
          conditions: conditions(
            own,
            entryIn(before?.["ancestors"], "ancestorRef", ancestorRef, options),
            at,
          ),
        })),
      };
    default:
      throw new Error(`no status for ${verdict satisfies never}`);
  }
}

interface Moment {
  readonly generation: number;
  readonly now: string;
}

function conditions(
  verdicts: readonly Verdict[],
  before: readonly Condition[],
  { generation, now }: Moment,
): Condition[] {
  return verdicts.map((verdict) => {
    const previous = before.find(({ type }) => type === verdict.type);
    const kept = previous?.status === verdict.status ? previous.lastTransitionTime : undefined;
    return { ...verdict, observedGeneration: generation, lastTransitionTime: kept ?? now };
  });
}

/** Only the experimental kind has a port in its status: there it may have been assigned. */
function listeners(
  verdicts: Extract<ObjectVerdict, { type: "gateway" | "set" }>["listeners"],
  before: Record<string, unknown> | undefined,
  at: Moment,
  withPort: boolean,
): readonly unknown[] {
  const previous = (before?.["listeners"] ?? []) as readonly {
    name: string;
    conditions?: readonly Condition[];
  }[];
  return verdicts.map(({ name, port, supportedKinds, attachedRoutes, conditions: own }) => ({
    name,
    ...(withPort && port > 0 ? { port } : {}),
    supportedKinds,
    attachedRoutes,
    conditions: conditions(own, previous.find((listener) => listener.name === name)?.conditions ?? [], at),
  }));
}

function conditionsIn(status: Record<string, unknown> | undefined): readonly Condition[] {
  return (status?.["conditions"] ?? []) as readonly Condition[];
}

/** Our own earlier entry for the same reference, among entries of other controllers. */
function entryIn(
  entries: unknown,
  field: string,
  reference: unknown,
  { controllerName }: RenderOptions,
): readonly Condition[] {
  const own = ((entries ?? []) as readonly Record<string, unknown>[]).find(
    (entry) => entry["controllerName"] === controllerName && sameReference(entry[field], reference),
  );
  return (own?.["conditions"] ?? []) as readonly Condition[];
}

const REFERENCE_FIELDS: readonly string[] = ["group", "kind", "namespace", "name", "sectionName", "port"];

/** Whether two references of a status name the same thing in the same words. */
export function sameReference(a: unknown, b: unknown): boolean {
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  return REFERENCE_FIELDS.every((field) => left?.[field] === right?.[field]);
}
