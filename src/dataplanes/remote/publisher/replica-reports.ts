/**
 * What became of items, over all pods of a Gateway: rejected as soon as one of them rejects,
 * programmed as soon as one serves.
 *
 * - A report speaks of one version of an item. It counts while the plan has that version, whichever
 *   of the two came first: pods take their plan from any controller, and this one may be behind.
 * - What was told of an item goes on being told when the item changes, for `unconfirmedMs`: pods
 *   confirm within milliseconds, and a status must not flicker. After that it is pending: what was
 *   said is of another version.
 * - What was told stays told while no pod is connected: pods go on serving when their controller is
 *   away.
 * - An item of which no report is known is programmed when a pod serves the whole plan, has not
 *   rejected it, and has told all that it has to tell, for `repairMs`. No report can be lost; this
 *   holds even if one was.
 */
import type { ItemReport } from "../../../plan/item-report.ts";
import type { ItemId } from "../../../plan/plan.ts";
import type { ReportMessage, VersionReport } from "../protocol/protocol.ts";
import { ReportState } from "../protocol/report-state.ts";
import { isDigest, isItemId, soundReports } from "../protocol/sound-reports.ts";

export interface ReplicaReportsOptions {
  /** The Gateway whose plan has the item. */
  readonly gatewayOf: (id: ItemId) => string | undefined;
  /** The digest of the item in the plan. */
  readonly versionOf: (id: ItemId) => string | undefined;
  /** Of this controller. */
  readonly release: string;
  readonly now?: () => number;
}

/** A pod, by an id that no other pod has. */
export interface ReportingReplica {
  readonly id: string;
  readonly gateway: string;
}

export interface ReportLimits {
  readonly unconfirmedMs: number;
  readonly repairMs: number;
  /** Characters of reports, for each pod, of items that this controller does not have. */
  readonly ahead: number;
}

/** A burst of ten thousand tenants is ahead by half as much. */
export const REPORT_LIMITS: ReportLimits = {
  unconfirmedMs: 1_000,
  repairMs: 2_000,
  ahead: 8 * 1024 * 1024,
};
const RECOUNT_MS = 1_000;
const OVERHEAD = 100;

interface ReplicaState {
  readonly reports: ReportState;
  release?: string;
  /** Characters kept of reports whose items are not in the plan, at most. */
  ahead: number;
  recountedAt: number;
}

/** What the engine was told. */
type Told = "programmed" | "pending" | ItemReport;

export class ReplicaReports {
  readonly #options: ReplicaReportsOptions;
  readonly #now: () => number;
  readonly #replicas: Map<string, Map<string, ReplicaState>> = new Map();
  readonly #told: Map<ItemId, Told> = new Map();
  /** By Gateway: items whose present version nobody has spoken of, and since when. */
  readonly #unconfirmed: Map<string, Map<ItemId, number>> = new Map();
  #handler: (reports: readonly ItemReport[]) => void = () => {};

  constructor(options: ReplicaReportsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  onChange(handler: (reports: readonly ItemReport[]) => void): void {
    this.#handler = handler;
  }

  /** What a pod says; false where it has more to say than is known here. */
  take(replica: ReportingReplica, message: ReportMessage): boolean {
    const state = this.#stateOf(replica);
    const touched: ItemId[] = [];
    if (message.whole === true) {
      touched.push(...state.reports.ids());
      state.reports.clear();
      state.ahead = 0;
    }
    if (isDigest(message.release)) state.release = message.release;
    for (const id of listOf(message.forgets)) if (isItemId(id)) state.reports.delete(id);
    for (const report of soundReports(message.reports))
      if (this.#keep(replica, state, report)) touched.push(report.id);
    this.#settle(replica.gateway, touched);
    return !isDigest(message.told) || message.told === state.reports.digest;
  }

  /** A pod that has gone says nothing any more; what the others say stands. */
  forget({ id, gateway }: ReportingReplica): void {
    const replicas = this.#replicas.get(gateway);
    const state = replicas?.get(id);
    if (state === undefined) return;
    replicas?.delete(id);
    if (replicas?.size === 0) this.#replicas.delete(gateway);
    this.#settle(gateway, state.reports.ids());
  }

  /**
   * Items of a Gateway have come or changed. Of those that are `awaited`, every data plane reports.
   */
  planned(gateway: string, items: readonly { readonly id: ItemId; readonly awaited: boolean }[]): void {
    const now = this.#now();
    const unconfirmed = this.#unconfirmed.get(gateway) ?? new Map<ItemId, number>();
    for (const { id, awaited } of items)
      if ((awaited || this.#told.has(id)) && !unconfirmed.has(id)) unconfirmed.set(id, now);
    if (unconfirmed.size > 0) this.#unconfirmed.set(gateway, unconfirmed);
    this.#settle(
      gateway,
      items.map(({ id }) => id),
    );
  }

  /**
   * Items that are in no plan any more: what was told of them says nothing of others that will bear
   * their ids.
   */
  removed(gateway: string, ids: readonly ItemId[]): void {
    for (const id of ids) {
      this.#told.delete(id);
      this.#confirm(gateway, id);
      // Only a version tells whether a report speaks of what comes next under this id.
      for (const { reports } of this.#replicas.get(gateway)?.values() ?? [])
        if (reports.get(id)?.of === "") reports.delete(id);
    }
  }

  /**
   * Time has passed. Given are the pods that have served the whole plan of a Gateway, and have been
   * of one mind with this controller, for `repairMs`.
   */
  look(upToDate: (gateway: string) => readonly string[]): void {
    const now = this.#now();
    const changed: ItemReport[] = [];
    for (const [gateway, items] of [...this.#unconfirmed]) {
      const isServed = upToDate(gateway).length > 0;
      for (const [id, since] of [...items]) {
        const age = now - since;
        if (isServed && age >= REPORT_LIMITS.repairMs) {
          this.#confirm(gateway, id);
          this.#note({ id, state: "programmed" }, changed);
        } else if (age >= REPORT_LIMITS.unconfirmedMs && this.#told.has(id)) {
          this.#note({ id, state: "pending" }, changed);
        }
      }
    }
    if (changed.length > 0) this.#handler(changed);
  }

  #stateOf({ id, gateway }: ReportingReplica): ReplicaState {
    const replicas = this.#replicas.get(gateway) ?? new Map<string, ReplicaState>();
    this.#replicas.set(gateway, replicas);
    const state = replicas.get(id) ?? {
      reports: new ReportState(),
      ahead: 0,
      recountedAt: Number.NEGATIVE_INFINITY,
    };
    replicas.set(id, state);
    return state;
  }

  /** A pod speaks for its own Gateway only, and may be ahead of this controller by so much. */
  #keep({ gateway }: ReportingReplica, state: ReplicaState, report: VersionReport): boolean {
    const home = this.#options.gatewayOf(report.id);
    if (home !== undefined && home !== gateway) return false;
    if (home === undefined) {
      const cost = costOf(report.id, report);
      if (state.ahead + cost > REPORT_LIMITS.ahead) this.#recount(state);
      // It will be asked for again: the digests differ.
      if (state.ahead + cost > REPORT_LIMITS.ahead) return false;
      state.ahead += cost;
    }
    state.reports.set(report);
    return true;
  }

  /** Much of what was ahead is in the plan by now. */
  #recount(state: ReplicaState): void {
    const now = this.#now();
    if (now - state.recountedAt < RECOUNT_MS) return;
    state.recountedAt = now;
    state.ahead = 0;
    for (const id of state.reports.ids())
      if (this.#options.gatewayOf(id) === undefined) state.ahead += costOf(id, state.reports.get(id));
  }

  #settle(gateway: string, ids: Iterable<ItemId>): void {
    const changed: ItemReport[] = [];
    for (const id of new Set(ids)) {
      const verdict = this.#verdict(gateway, id);
      if (verdict === undefined) continue;
      this.#confirm(gateway, id);
      this.#note(verdict, changed);
    }
    if (changed.length > 0) this.#handler(changed);
  }

  #verdict(gateway: string, id: ItemId): ItemReport | undefined {
    const version = this.#options.versionOf(id);
    if (version === undefined) return undefined;
    let verdict: ItemReport | undefined;
    for (const { reports, release } of this.#replicas.get(gateway)?.values() ?? []) {
      const report = reports.get(id);
      if (report === undefined) continue;
      const isComparable = report.of !== "" && (release ?? this.#options.release) === this.#options.release;
      if (isComparable && report.of !== version) continue;
      const { of: _, ...said } = report;
      if (said.state === "rejected") return said;
      verdict ??= said;
    }
    return verdict;
  }

  #confirm(gateway: string, id: ItemId): void {
    const items = this.#unconfirmed.get(gateway);
    if (items?.delete(id) === true && items.size === 0) this.#unconfirmed.delete(gateway);
  }

  #note(report: ItemReport, changed: ItemReport[]): void {
    if (isSame(report, this.#told.get(report.id))) return;
    this.#told.set(report.id, report.state === "rejected" ? report : report.state);
    changed.push(report);
  }
}

function isSame(report: ItemReport, told: Told | undefined): boolean {
  if (typeof told !== "object") return report.state === told;
  return (
    report.state === told.state &&
    report.reason === told.reason &&
    report.message === told.message &&
    JSON.stringify(report.rules) === JSON.stringify(told.rules)
  );
}

function costOf(id: ItemId, report: VersionReport | undefined): number {
  const rules = report?.rules === undefined ? 0 : JSON.stringify(report.rules).length;
  return id.length + (report?.message?.length ?? 0) + rules + OVERHEAD;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
