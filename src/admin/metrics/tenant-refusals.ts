import type { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemId } from "../../plan/plan.ts";

export type TenantLimit = "connections" | "requests" | "backend";

/** Of the records of requests. */
export const limitOfReason: ReadonlyMap<string, TenantLimit> = new Map([
  ["TenantRequestLimit", "requests"],
  ["TenantConnectionLimit", "connections"],
  ["BackendLimit", "backend"],
]);

interface Refused {
  readonly labels: Readonly<Record<string, string>>;
  readonly count: number;
}

/**
 * Counted by listener, shown by owner: labels are what the plan has now, and nothing that clients
 * say.
 */
export class TenantRefusals {
  readonly #counts: Map<ItemId, Map<TenantLimit, number>> = new Map();

  count(listener: ItemId, limit: TenantLimit): void {
    const counts = this.#counts.get(listener) ?? new Map<TenantLimit, number>();
    this.#counts.set(listener, counts.set(limit, (counts.get(limit) ?? 0) + 1));
  }

  /**
   * One entry may come several times, once for each listener of the owner. What has left the plan
   * is forgotten.
   */
  current(table: RoutingTable): readonly Refused[] {
    return [...this.#counts].flatMap(([id, counts]) => {
      const owner = table.get("listener", id)?.owner;
      if (owner === undefined) {
        this.#counts.delete(id);
        return [];
      }
      const { kind, namespace, name } = owner;
      return [...counts].map(([limit, count]) => ({ labels: { kind, namespace, name, limit }, count }));
    });
  }
}
