import type { ItemId } from "../../../plan/plan.ts";
import { PlanDigest } from "./plan-digest.ts";
import { digestOf, type VersionReport } from "./protocol.ts";

/** Most reports only say `programmed`: those are kept as the digest of the item's version. */
type Kept = string | VersionReport;

const UNVERSIONED = "";

/**
 * The current reports of one pod. The pod has one of these, and every controller has a copy for
 * each pod. Equal digests mean equal reports. A later report on an item replaces the earlier one.
 */
export class ReportState {
  readonly #kept: Map<ItemId, Kept> = new Map();
  readonly #digest: PlanDigest = new PlanDigest();

  get size(): number {
    return this.#kept.size;
  }

  get digest(): string {
    return this.#digest.text;
  }

  set({ id, of = UNVERSIONED, state, reason, message, rules }: VersionReport): void {
    this.delete(id);
    const isPlain = state === "programmed" && reason === undefined && message === undefined;
    const kept: Kept = isPlain
      ? of
      : {
          id,
          of,
          state,
          ...(reason === undefined ? {} : { reason }),
          ...(message === undefined ? {} : { message }),
          ...(rules === undefined ? {} : { rules }),
        };
    this.#kept.set(id, kept);
    this.#digest.toggle(digestOfReport(id, kept));
  }

  delete(id: ItemId): void {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.delete(id);
    this.#digest.toggle(digestOfReport(id, kept));
  }

  clear(): void {
    for (const id of [...this.#kept.keys()]) this.delete(id);
  }

  get(id: ItemId): VersionReport | undefined {
    const kept = this.#kept.get(id);
    return kept === undefined ? undefined : reportOf(id, kept);
  }

  ids(): IterableIterator<ItemId> {
    return this.#kept.keys();
  }

  all(): readonly VersionReport[] {
    return Array.from(this.#kept, ([id, kept]) => reportOf(id, kept));
  }
}

function reportOf(id: ItemId, kept: Kept): VersionReport {
  return typeof kept === "string" ? { id, of: kept, state: "programmed" } : kept;
}

function digestOfReport(id: ItemId, kept: Kept): string {
  const { of, state, reason = "", message = "", rules } = reportOf(id, kept);
  // Without rejected rules the digest is the same as that of releases that do not report rules.
  return digestOf(JSON.stringify([id, of, state, reason, message, ...(rules === undefined ? [] : [rules])]));
}
