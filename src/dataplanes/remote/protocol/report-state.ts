import type { ItemId } from "../../../plan/plan.ts";
import { PlanDigest } from "./plan-digest.ts";
import { digestOf, type VersionReport } from "./protocol.ts";

/** Most reports say `programmed`, and are kept as the digest of the version that they speak of. */
type Kept = string | VersionReport;

const UNVERSIONED = "";

/**
 * All that a pod says of its items. The pod has one of these, and every controller has one for each
 * pod; they are the same when their digests are. A pod's later word on an item replaces its earlier
 * one.
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
  // As pods without refused rules say it, of whatever release.
  return digestOf(JSON.stringify([id, of, state, reason, message, ...(rules === undefined ? [] : [rules])]));
}
