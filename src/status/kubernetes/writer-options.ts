import type { Key } from "../../api/key.ts";
import type { Kind } from "../../api/resource.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import type { Clock } from "../scheduling/clock.ts";
import type { StatusTiming } from "../scheduling/timing.ts";
import type { RenderingOptions } from "./desired-status.ts";
import type { LiveObject } from "./live-object.ts";
import type { StatusClient } from "./status-requests.ts";

export interface StatusWriterOptions extends RenderingOptions {
  readonly client: StatusClient;
  readonly onWrite?: (write: StatusWrite) => void;
  /** Somebody keeps changing what we write; called again each time it is written anew. */
  readonly onContested?: (contest: {
    readonly key: Key;
    readonly live: LiveObject;
    readonly times: number;
  }) => void;
  readonly observer?: KubernetesObserver & StatusObserver;
  readonly timing?: Partial<StatusTiming>;
  readonly clock?: Clock;
}

export interface StatusObserver {
  readonly onStatusWrite?: (write: {
    readonly kind: Kind;
    readonly result: "written" | "conflict" | "failed";
  }) => void;
  /** What was already written had to be written again. */
  readonly onStatusContested?: (contest: { readonly kind: Kind }) => void;
  /**
   * The effect of a change that was watched stands in a status, so long after it was seen. Counts,
   * which are gathered, do not count.
   */
  readonly onStatusTold?: (told: { readonly kind: Kind; readonly seconds: number }) => void;
}

export interface StatusWrite {
  readonly key: Key;
  readonly verdict: ObjectVerdict | undefined;
  readonly before: LiveObject;
  readonly after: LiveObject;
}
