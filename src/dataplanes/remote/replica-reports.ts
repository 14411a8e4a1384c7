import type { ItemId } from "../../plan/plan.ts";
import type { ItemReport } from "../dataplane.ts";

/**
 * The fate of items over several replicas: rejected as soon as one replica rejects, programmed as soon as one serves. What was programmed stays so
 * while no replica is connected: pods go on serving when their controller is away.
 */
export class ReplicaReports {
  readonly #byItem: Map<ItemId, Map<string, ItemReport>> = new Map();
  readonly #itemsOf: Map<string, Set<ItemId>> = new Map();
  readonly #told: Map<ItemId, ItemReport> = new Map();
  #handler: (reports: readonly ItemReport[]) => void = () => {};

  onChange(handler: (reports: readonly ItemReport[]) => void): void {
    this.#handler = handler;
  }

  take(replica: string, reports: readonly ItemReport[]): void {
    const items = this.#itemsOf.get(replica) ?? new Set();
    this.#itemsOf.set(replica, items);
    for (const report of reports) {
      items.add(report.id);
      const replicas = this.#byItem.get(report.id) ?? new Map<string, ItemReport>();
      this.#byItem.set(report.id, replicas.set(replica, report));
    }
    this.#tell(reports.map(({ id }) => id));
  }

  /** A replica that has gone says nothing any more; what the others say stands. */
  forget(replica: string): void {
    const items = this.#itemsOf.get(replica) ?? new Set();
    this.#itemsOf.delete(replica);
    for (const id of items) this.#byItem.get(id)?.delete(replica);
    this.#tell([...items].filter((id) => (this.#byItem.get(id)?.size ?? 0) > 0));
  }

  /** Items that are in no plan any more: what was said of them says nothing of others that will bear their ids. */
  drop(ids: readonly ItemId[]): void {
    for (const id of ids) {
      this.#byItem.delete(id);
      this.#told.delete(id);
    }
  }

  #tell(ids: readonly ItemId[]): void {
    const changed: ItemReport[] = [];
    for (const id of new Set(ids)) {
      const reports = [...(this.#byItem.get(id)?.values() ?? [])];
      const verdict = reports.find(({ state }) => state === "rejected") ?? reports[0];
      if (verdict === undefined || same(verdict, this.#told.get(id))) continue;
      this.#told.set(id, verdict);
      changed.push(verdict);
    }
    if (changed.length > 0) this.#handler(changed);
  }
}

function same(a: ItemReport, b: ItemReport | undefined): boolean {
  return b !== undefined && a.state === b.state && a.reason === b.reason && a.message === b.message;
}

const MOST_MESSAGE = 1024;
/** As the API wants the reason of a condition. */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$/;

/** Reports as they should be, of whatever a pod has sent: they end in statuses, which the API server would refuse for one bad word. */
export function soundReports(given: unknown): readonly ItemReport[] {
  return (Array.isArray(given) ? given : []).flatMap((report: Partial<ItemReport> | null): ItemReport[] => {
    const { id, state, reason, message } = report ?? {};
    if (typeof id !== "string" || (state !== "programmed" && state !== "rejected")) return [];
    return [
      {
        id,
        state,
        ...(typeof reason === "string" && REASON.test(reason) ? { reason } : {}),
        ...(typeof message === "string" ? { message: message.slice(0, MOST_MESSAGE) } : {}),
      },
    ];
  });
}
