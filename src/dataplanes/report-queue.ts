import type { ItemReport } from "../plan/item-report.ts";
import type { ItemId } from "../plan/plan.ts";

/**
 * The fates of items on their way out: asked for once in a turn of the event loop, however often
 * they changed, and told when they are news. Never from within whatever changed them: whoever
 * applies a plan is not ready for an answer.
 */
export class ReportQueue {
  /** Undefined while the fate is not known yet. */
  readonly #reportOf: (id: ItemId) => ItemReport | undefined;
  /** Does some of what must be done before fates are known, and says whether there is more. */
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

  /** An item's fate may be another now. */
  change(id: ItemId): void {
    this.#changed.add(id);
    this.wake();
  }

  /** There is work to do. */
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

  /** An item was given anew: its fate is news even if it is the same. */
  renew(id: ItemId): void {
    this.#reported.delete(id);
  }

  /** An item is gone. */
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
