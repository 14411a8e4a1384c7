/** What an object's status should be by its verdict, as the fields that must change. */
import { type Key, kindOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import { renderStatus } from "../render.ts";
import { featuresStatus, type InstalledApi, supportedVersion } from "./gateway-class.ts";
import { keepForNow } from "./grace.ts";
import type { LiveObject } from "./live-object.ts";
import { changedFields, type Status } from "./merge-status.ts";
import type { DesiredStatus, StatusEntry } from "./status-entry.ts";

export interface RenderingOptions {
  readonly controllerName: string;
  /** What the data plane of a GatewayClass, by name, supports. */
  readonly features: (gatewayClass: string) => ReadonlySet<string>;
  readonly installed: () => InstalledApi;
}

interface Moment {
  readonly date: Date;
  /** This leader has only just begun. */
  readonly isGrace: boolean;
}

/** Undefined while the verdict is on another generation than the live object. */
export function desiredStatus(
  key: Key,
  { live, normalised }: StatusEntry,
  verdict: ObjectVerdict,
  { date, isGrace, ...options }: RenderingOptions & Moment,
): DesiredStatus | undefined {
  if (live === undefined || verdict.generation !== (live.metadata.generation ?? 0)) return undefined;
  const rendered = render(key, verdict, live, { ...options, now: timestamp(date) });
  const { status, keeps } = isGrace ? keepForNow(live.status, rendered) : { status: rendered, keeps: false };
  const changed = changedFields(live.status, status, options.controllerName);
  return { over: live, fields: normalised.without(changed, live.status), keeps };
}

function render(
  key: Key,
  verdict: ObjectVerdict,
  live: LiveObject,
  { controllerName, features, installed, now }: RenderingOptions & { readonly now: string },
): Status {
  const options = { controllerName, now };
  const object = { kind: kindOf(key), status: live.status } as unknown as Resource;
  if (verdict.type !== "class") return renderStatus(object, verdict, options);
  const conditions = [...verdict.conditions, supportedVersion(installed())];
  return {
    ...renderStatus(object, { ...verdict, conditions }, options),
    ...featuresStatus(features(live.metadata.name), installed()),
  };
}

/**
 * Go programs keep whole seconds when they write a status back; anything finer would look like a
 * change.
 */
export function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
