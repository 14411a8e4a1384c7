import type { ItemReport } from "../plan/item-report.ts";
import type { ItemId } from "../plan/plan.ts";

/**
 * Collects reports of plan items and passes them to a handler. An item that changes several times
 * in one turn of the event loop is asked for its report once. A report that equals the one before
 * is not passed on. The handler is never called while a plan is being applied, only in a later
 * turn.
 */
export class ReportQueue {
  /** Undefined while the item is pending. */
  readonly #reportOf: (id: ItemId) => ItemReport | undefined;
  /** Does a part of the work that reports depend on. Returns whether there is more. */
  readonly #work: () => boolean;
  readonly #changed: Set<ItemId> = new Set();
  readonly #reported: Map<ItemId, ItemReport> = new Map();
  #handler: ((reports: readonly ItemReport[]) => void) | undefined;
  #scheduled = false;

  constructor(reportOf: (id: ItemId) => ItemReport | undefined, work: () => boolean = () => false) {
    this.#reportOf = reportOf;
    this.#work = work;
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#handler = handler;
    if (this.#reported.size > 0) handler([...this.#reported.values()]);
  }

  /** The item's report may have changed. */
  change(id: ItemId): void {
    this.#changed.add(id);
    this.wake();
  }

  /** Calls `work` and passes on reports in the next turn. */
  wake(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const hasMore = this.#work();
      this.#tell();
      if (hasMore) this.wake();
    });
  }

  /** The item is in the plan again: its next report is passed on even if it is the same. */
  renew(id: ItemId): void {
    this.#reported.delete(id);
  }

  /** The item is no longer in the plan. */
  forget(id: ItemId): void {
    this.#reported.delete(id);
    this.#changed.delete(id);
  }

  #tell(): void {
    const reports: ItemReport[] = [];
    for (const id of this.#changed) {
      const report = this.#reportOf(id);
      const before = this.#reported.get(id);
      if (report === undefined || (before !== undefined && sameReport(before, report))) continue;
      this.#reported.set(id, report);
      reports.push(report);
    }
    this.#changed.clear();
    if (reports.length > 0) this.#handler?.(reports);
  }
}

export function reportFor(id: ItemId, reason: string, problem: string | undefined): ItemReport {
  return problem === undefined
    ? { id, state: "programmed" }
    : { id, state: "rejected", reason, message: problem };
}

function sameReport(a: ItemReport, b: ItemReport): boolean {
  return (
    a.state === b.state &&
    a.reason === b.reason &&
    a.message === b.message &&
    JSON.stringify(a.rules) === JSON.stringify(b.rules)
  );
}
