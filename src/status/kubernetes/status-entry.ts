import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import type { Backoff } from "../../kubernetes/backoff.ts";
import { WriteThrottle } from "../scheduling/write-throttle.ts";
import { type LiveObject, Normalised } from "./live-object.ts";
import type { Status } from "./merge-status.ts";

/** What the writer knows of one object. */
export interface StatusEntry {
  live?: LiveObject;
  verdict?: ObjectVerdict;
  /** The engine had a verdict once, or may have had one before this process began. */
  wasOurs: boolean;
  readonly throttle: WriteThrottle;
  readonly normalised: Normalised;
  backoff?: Backoff;
  /** When the first change was seen whose effect is not written yet: for metrics. */
  since?: number;
  /**
   * Since when the status may be wrong: gathered writes wait from then.
   */
  dirtySince?: number;
  /** When the watch last showed an object that is older than the one we know, and none since. */
  doubtSince?: number;
}

/** What to write, and over which version of the object. */
export interface DesiredStatus {
  readonly over: LiveObject;
  /** None when the object says it already. */
  readonly fields: Status;
  /**
   * It keeps, during the grace time, what an earlier leader wrote and this one does not know yet.
   */
  readonly keeps: boolean;
}

export function newEntry(): StatusEntry {
  return { wasOurs: false, throttle: new WriteThrottle(), normalised: new Normalised() };
}

export function isEmpty({ fields }: DesiredStatus): boolean {
  return Object.keys(fields).length === 0;
}
