import type { ItemReport } from "../plan/item-report.ts";
import type { PlanDelta } from "../plan/plan.ts";

/**
 * What every data plane is: plan deltas go in, the status of items comes out.
 *
 * A data plane never judges tenants' content by throwing: whatever it cannot serve it rejects, item
 * by item, and goes on with the rest.
 */
export interface DataPlane {
  /** Names of the conformance features that it really serves. */
  readonly features: ReadonlySet<string>;

  /**
   * Costs what the delta costs, not what exists. Takes effect for the next connection or request.
   */
  apply(delta: PlanDelta): void;

  /**
   * Called with every change of an item's status. A report speaks of the item as it was applied
   * last. Every upsert of one of the types in `REPORTED_TYPES` is answered by a report, even if the
   * status is the same as before; hosts and backends are reported once they were rejected.
   */
  onReport(handler: (reports: readonly ItemReport[]) => void): void;

  /**
   * Resolves when all that was applied before (of one Gateway, `namespace/name`, if it is named) is
   * served, whatever is applied after; with false when the data plane was closed first. Absent
   * where it is served as soon as `apply` returns.
   */
  served?(gateway?: string): Promise<boolean>;

  /** Stops accepting, lets what is in flight finish within the limit, then closes everything. */
  close(options?: CloseOptions): Promise<void>;
}

export interface CloseOptions {
  /** How long requests in flight may take to finish. */
  readonly graceMs?: number;
}
