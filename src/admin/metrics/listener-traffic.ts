import type { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemId } from "../../plan/plan.ts";

/** What one listener has served since the process began. */
export interface ListenerTraffic {
  /** `Kind/namespace/name#section` */
  readonly listener: string;
  readonly requests: number;
  /** Answers with 5xx. */
  readonly errors: number;
}

interface Tally {
  requests: number;
  errors: number;
}

/** Requests by listener, for the page. Listeners that have left the plan are dropped. */
export class TrafficTallies {
  readonly #tallies: Map<ItemId, Tally> = new Map();

  count(listener: ItemId, status: number): void {
    let tally = this.#tallies.get(listener);
    if (tally === undefined) {
      tally = { requests: 0, errors: 0 };
      this.#tallies.set(listener, tally);
    }
    tally.requests++;
    if (status >= 500) tally.errors++;
  }

  current(table: RoutingTable): ListenerTraffic[] {
    return [...this.#tallies].flatMap(([id, { requests, errors }]) => {
      const item = table.get("listener", id);
      if (item === undefined) {
        this.#tallies.delete(id);
        return [];
      }
      const { kind, namespace, name } = item.owner;
      return [{ listener: `${kind}/${namespace}/${name}#${item.section}`, requests, errors }];
    });
  }
}
