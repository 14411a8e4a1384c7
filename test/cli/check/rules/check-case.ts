/** Manifests, and the finding that a rule must give for them. */
export interface CheckCase {
  readonly rule: string;
  readonly text: string;
  readonly owner: string;
  readonly message: RegExp;
  /** The text at the place of the finding. */
  readonly at: string;
  /** Other rules that report the same mistake. */
  readonly beside?: readonly string[];
}
