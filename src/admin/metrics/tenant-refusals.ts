import type { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemId } from "../../plan/plan.ts";

export type TenantLimit = "connections" | "requests" | "backend";

/** The limit that a request record's `reason` stands for. */
export const limitOfReason: ReadonlyMap<string, TenantLimit> = new Map([
  ["TenantRequestLimit", "requests"],
  ["TenantConnectionLimit", "connections"],
  ["BackendLimit", "backend"],
]);

interface Refused {
  readonly labels: Readonly<Record<string, string>>;
  readonly count: number;
}

/** Counts by listener, labels by owner. Labels come from the current plan, never from clients. */
export class TenantRefusals {
  readonly #counts: Map<ItemId, Map<TenantLimit, number>> = new Map();

  count(listener: ItemId, limit: TenantLimit): void {
    const counts = this.#counts.get(listener) ?? new Map<TenantLimit, number>();
    this.#counts.set(listener, counts.set(limit, (counts.get(limit) ?? 0) + 1));
  }

  /**
   * An owner with several listeners has several entries. Listeners that have left the plan are
   * dropped.
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
