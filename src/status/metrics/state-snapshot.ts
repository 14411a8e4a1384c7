/**
 * What one scrape shows: references to objects and verdicts of one moment, none of which is ever
 * edited. So the text can be written bit by bit, while the state goes on changing.
 */
import type { GatewayClass } from "../../api/gateway.ts";
import { type Key, kindOf } from "../../api/key.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import type { RenderingOptions } from "../kubernetes/desired-status.ts";
import { featuresStatus, supportedVersion } from "../kubernetes/gateway-class.ts";
import type { JudgedClass } from "./gateway-families.ts";
import type { JudgedRoute } from "./route-families.ts";
import type { JudgedObject } from "./state-family.ts";

export interface StateView {
  readonly controllerName: string;
  readonly resources: ReadonlyMap<Key, Resource>;
  readonly verdicts: () => Iterable<readonly [Key, ObjectVerdict]>;
  /** What statuses of GatewayClasses say beyond their verdicts; absent where it is not written. */
  readonly classes?: Pick<RenderingOptions, "features" | "installed">;
}

export interface StateSnapshot {
  readonly objects: ReadonlyMap<Kind, readonly JudgedObject[]>;
  readonly omitted: ReadonlyMap<Kind, number>;
}

/** Tenants can make as many objects as their quotas allow; a scrape stays bounded. */
const MOST_OBJECTS = 50_000;

export function takeSnapshot(view: StateView, most: number = MOST_OBJECTS): StateSnapshot {
  const objects = new Map<Kind, JudgedObject[]>();
  for (const [key, verdict] of view.verdicts()) {
    const resource = view.resources.get(key);
    if (resource === undefined || verdict.type === "policy" || isNobodys(verdict)) continue;
    const kind = kindOf(key);
    const known = objects.get(kind);
    const object = complete({ resource, verdict }, view);
    if (known === undefined) objects.set(kind, [object]);
    else known.push(object);
  }
  const omitted = new Map<Kind, number>();
  for (const [kind, all] of objects) {
    omitted.set(kind, Math.max(0, all.length - most));
    if (all.length > most) objects.set(kind, oldest(all, most));
  }
  return { objects, omitted };
}

/** The status of a set without a Gateway is not this controller's to write. */
function isNobodys(verdict: ObjectVerdict): boolean {
  return verdict.type === "set" && verdict.orphan === true;
}

function complete(object: JudgedObject, { controllerName, classes }: StateView): JudgedObject {
  const { resource, verdict } = object;
  if (verdict.type === "route") {
    const route: JudgedRoute = { resource: resource as JudgedRoute["resource"], verdict, controllerName };
    return route;
  }
  if (verdict.type !== "class") return object;
  const judged: JudgedClass = { resource: resource as GatewayClass, verdict, features: [] };
  if (classes === undefined) return judged;
  const installed = classes.installed();
  const listed = featuresStatus(classes.features(resource.metadata.name), installed).supportedFeatures ?? [];
  return {
    ...judged,
    verdict: { ...verdict, conditions: [...verdict.conditions, supportedVersion(installed)] },
    features: listed.map(({ name }) => name),
  } as JudgedClass;
}

/** Whoever makes many objects does not push out those that were there before. */
function oldest(objects: readonly JudgedObject[], most: number): JudgedObject[] {
  const age = ({ resource: { metadata } }: JudgedObject): string => metadata.creationTimestamp ?? "";
  return objects.toSorted((a, b) => (age(a) < age(b) ? -1 : age(a) > age(b) ? 1 : 0)).slice(0, most);
}
