import type { FieldPath } from "../../../api/admission/schema/field-error.ts";
import type { Key } from "../../../api/key.ts";
import type { OverlapReport } from "../../../matching/overlap/overlap.ts";
import type { MergedState } from "../../../view/merged-state.ts";
import type { Workspace } from "../../workspace/workspace.ts";

/** Most serious first. */
export const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];
export type Severity = "error" | "warning" | "info";

/** A problem with its severity and its place in a file: what `check` prints. */
export interface Finding {
  readonly rule: string;
  readonly severity: Severity;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Field path such as `spec.listeners[0].hostname`. */
  readonly path?: string;
  /** The object whose author can fix it: `ListenerSet team-a/web`. */
  readonly owner?: string;
  readonly message: string;
  readonly remedy: string;
}

/** One check. A rule knows no files: it names an object and a field of it. */
export interface CheckRule {
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
  /** How listeners, hosts and rules of each port overlap. */
  readonly overlaps: readonly { readonly port: number; readonly report: OverlapReport }[];
  readonly now: Date;
  /** Certificates that expire within this many days are reported. */
  readonly expiryDays: number;
}
