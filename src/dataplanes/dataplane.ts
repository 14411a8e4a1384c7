import type { ItemId, PlanDelta, PlanItem } from "../plan/plan.ts";

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

/** Types of items of which every data plane reports. Of others it may, if it rejects them. */
export const REPORTED_TYPES: ReadonlySet<PlanItem["type"]> = new Set(["port", "listener", "certificate"]);

export interface ItemReport {
  readonly id: ItemId;
  /**
   * `pending` takes back what was said: the item has changed, and nobody has confirmed that yet.
   * Only said where several data planes are seen as one.
   */
  readonly state: "programmed" | "rejected" | "pending";
  /** A short CamelCase word, for example `PortUnavailable`; only of rejected items. */
  readonly reason?: string;
  /** For people; names nothing but the item's own content. */
  readonly message?: string;
  /** Only of rejected hosts, on which several routes meet: whose rules are rejected. */
  readonly rules?: readonly RefusedRule[];
}

/** A rule of a route that a data plane does not serve as written. */
export interface RefusedRule {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Index in spec.rules. */
  readonly rule: number;
  /** For the route's author; names nothing but the route's own content. */
  readonly message: string;
}

export interface CloseOptions {
  /** How long requests in flight may take to finish. */
  readonly graceMs?: number;
}
