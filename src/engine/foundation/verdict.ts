import type { Condition } from "../../api/metadata.ts";

/**
 * Why something is not as its author wanted: a reason of the API and a message in the author's own
 * terms.
 */
export interface Failure {
  readonly reason: string;
  readonly message: string;
}

/** A condition before it is written: without times and generation, which belong to the writer. */
export type Verdict = Pick<Condition, "type" | "status" | "reason" | "message">;

export function holds(type: string, reason: string, message: string): Verdict {
  return { type, status: "True", reason, message };
}

export function fails(type: string, failure: Failure): Verdict {
  return { type, status: "False", reason: failure.reason, message: failure.message };
}
