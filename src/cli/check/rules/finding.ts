import type { FieldPath } from "../../../api/admission/schema/field-error.ts";
import type { Key } from "../../../api/key.ts";
import type { OverlapReport } from "../../../matching/overlap/overlap.ts";
import type { MergedState } from "../../../view/merged-state.ts";
import type { Workspace } from "../../workspace/workspace.ts";

/** Most serious first. */
export const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];
export type Severity = "error" | "warning" | "info";

/** What `check` has found at one place. */
export interface Finding {
  readonly rule: string;
  readonly severity: Severity;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Field path such as `spec.listeners[0].hostname`. */
  readonly path?: string;
  /** The object whose author can mend it: `ListenerSet team-a/web`. */
  readonly owner?: string;
  readonly message: string;
  readonly remedy: string;
}

/**
 * One thing that may be wrong. Rules know nothing of files: they name an object and a field of it.
 */
export interface Rule {
  readonly id: string;
  readonly severity: Severity;
  /** One line for the reference page. */
  readonly summary: string;
  find(input: CheckInput): Iterable<Problem>;
}

export interface Problem {
  readonly at: Key;
  readonly path?: FieldPath;
  readonly message: string;
  readonly remedy: string;
}

export interface CheckInput {
  readonly workspace: Workspace;
  readonly state: MergedState;
  /** What listeners, hosts and rules of each port do to each other. */
  readonly overlaps: readonly { readonly port: number; readonly report: OverlapReport }[];
  readonly now: Date;
  /** Certificates that end within this many days are reported. */
  readonly expiryDays: number;
}
