/** The form of a metric that tells the state of objects, one sample or more for each of them. */
import type { Resource } from "../../api/resource.ts";
import type { Verdict } from "../../engine/foundation/verdict.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";

/** An object of this controller, with what its status says. */
export interface JudgedObject<R = Resource, V = ObjectVerdict> {
  readonly resource: R;
  readonly verdict: V;
}

export interface StateSample {
  /** In the order of the family's labels; an undefined one is left out. */
  readonly values: readonly (string | number | undefined)[];
  readonly value: number;
}

export interface StateFamily<O = JudgedObject> {
  /** The name, after `gatewayapi_` and the kind. */
  readonly suffix: string;
  readonly help: string;
  /** Beside those that name the object. */
  readonly labels: readonly string[];
  readonly samples: (object: O) => readonly StateSample[];
}

export function info(...values: StateSample["values"]): StateSample {
  return { values, value: 1 };
}

/** As kube-state-metrics shows a condition: 1 for True, 0 for False and Unknown. */
export function conditionSamples(
  conditions: readonly Verdict[],
  ...before: StateSample["values"]
): readonly StateSample[] {
  return conditions.map(({ type, status }) => ({
    values: [...before, type],
    value: status === "True" ? 1 : 0,
  }));
}

type Times = Pick<JudgedObject, "resource">;

/** Of every kind. */
export const LIFE_FAMILIES: readonly StateFamily<Times>[] = [
  {
    suffix: "created",
    help: "When the object was made, in seconds since the epoch; absent for objects of files",
    labels: [],
    samples: ({ resource: { metadata } }) => timeSamples(metadata.creationTimestamp),
  },
  {
    suffix: "deleted",
    help: "Since when the object is being deleted, in seconds since the epoch; absent otherwise",
    labels: [],
    samples: ({ resource: { metadata } }) => timeSamples(metadata.deletionTimestamp),
  },
];

function timeSamples(time: string | undefined): readonly StateSample[] {
  const milliseconds = Date.parse(time ?? "");
  return Number.isNaN(milliseconds) ? [] : [{ values: [], value: Math.floor(milliseconds / 1000) }];
}
