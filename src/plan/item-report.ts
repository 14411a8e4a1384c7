import type { ItemId, PlanItem } from "./plan.ts";

/** Types of items of which every data plane reports. Of others it may, if it rejects them. */
export const REPORTED_TYPES: ReadonlySet<PlanItem["type"]> = new Set(["port", "listener", "certificate"]);

export interface ItemReport {
  readonly id: ItemId;
  /**
   * `pending` takes back an earlier report: the item has changed, and no data plane has confirmed
   * that yet. Used only where several data planes are reported as one.
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
