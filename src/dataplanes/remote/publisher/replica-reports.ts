/**
 * The programming status of items, from the reports of all pods of a Gateway. An item is rejected
 * if one pod rejects it, and programmed if one pod serves it.
 *
 * - A report is about one version of an item. It counts while the plan has that version. It may
 *   arrive before the version does: the pod may take its plan from another controller that is
 *   ahead.
 * - When an item changes, its last status stays for `unconfirmedMs`: pods report within
 *   milliseconds, and a status must not flicker. After that the item is pending.
 * - The last status also stays while no pod is connected: pods serve without a controller.
 * - An item without a report, or one whose rejection came from a pod that has gone, becomes
 *   programmed when, for `repairMs`, a pod has served the whole plan and its reports agree with
 *   those here. The protocol loses no report. This rule holds even if it did.
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
  /** The release of this controller. */
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
  /** The most characters that are kept, per pod, of reports on items this plan does not have. */
  readonly ahead: number;
}

/** `ahead` is twice what a burst of ten thousand tenants needs. */
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
  /** Upper bound of the characters that are kept of reports whose items are not in the plan. */
  ahead: number;
  recountedAt: number;
}

/** An item of whose current version no connected pod has reported. */
interface Unconfirmed {
  readonly since: number;
  /** Whether its last status stands meanwhile: the item is as it was, only the pod has gone. */
  readonly keepsStatus: boolean;
}

/** The status that was last passed to the engine. */
type Told = "programmed" | "pending" | ItemReport;

export class ReplicaReports {
  readonly #options: ReplicaReportsOptions;
  readonly #now: () => number;
  readonly #replicas: Map<string, Map<string, ReplicaState>> = new Map();
  readonly #told: Map<ItemId, Told> = new Map();
  readonly #unconfirmed: Map<string, Map<ItemId, Unconfirmed>> = new Map();
  #handler: (reports: readonly ItemReport[]) => void = () => {};

  constructor(options: ReplicaReportsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  onChange(handler: (reports: readonly ItemReport[]) => void): void {
    this.#handler = handler;
  }

  /** Takes a pod's reports. False if the digests differ: then some reports are missing here. */
  take(replica: ReportingReplica, message: ReportMessage): boolean {
    const state = this.#stateOf(replica);
    const touched: ItemId[] = [];
    if (message.whole === true) {
      touched.push(...state.reports.ids());
      state.reports.clear();
      state.ahead = 0;
    }
    if (isDigest(message.release)) state.release = message.release;
    for (const id of listOf(message.forgets)) {
      if (!isItemId(id)) continue;
      state.reports.delete(id);
      touched.push(id);
    }
    for (const report of soundReports(message.reports))
      if (this.#keep(replica, state, report)) touched.push(report.id);
    this.#settle(replica.gateway, touched);
    return !isDigest(message.told) || message.told === state.reports.digest;
  }

  /** Forgets the reports of a pod that has gone. Those of other pods still count. */
  forget({ id, gateway }: ReportingReplica): void {
    const replicas = this.#replicas.get(gateway);
    const state = replicas?.get(id);
    if (state === undefined) return;
    replicas?.delete(id);
    if (replicas?.size === 0) this.#replicas.delete(gateway);
    this.#settle(gateway, state.reports.ids());
  }

  /** Items of a Gateway are new or have changed. Data planes report on those that are `awaited`. */
  planned(gateway: string, items: readonly { readonly id: ItemId; readonly awaited: boolean }[]): void {
    const awaited = items.filter((item) => item.awaited || this.#told.has(item.id));
    this.#doubt(
      gateway,
      awaited.map(({ id }) => id),
      false,
    );
    this.#settle(
      gateway,
      items.map(({ id }) => id),
    );
  }

  /**
   * Items are no longer in the plan. Their status must not pass to later items with the same id.
   */
  removed(gateway: string, ids: readonly ItemId[]): void {
    for (const id of ids) {
      this.#told.delete(id);
      this.#confirm(gateway, id);
      // A report without a version could be taken for one on the next item with this id.
      for (const { reports } of this.#replicas.get(gateway)?.values() ?? [])
        if (reports.get(id)?.of === "") reports.delete(id);
    }
  }

  /**
   * Checks the time limits; called at intervals. `upToDate` returns the pods of a Gateway that, for
   * `repairMs`, have served its whole plan and whose reports agree with those here.
   */
  look(upToDate: (gateway: string) => readonly string[]): void {
    const now = this.#now();
    const changed: ItemReport[] = [];
    for (const [gateway, items] of [...this.#unconfirmed]) {
      const isServed = upToDate(gateway).length > 0;
      for (const [id, { since, keepsStatus }] of [...items]) {
        const age = now - since;
        if (isServed && age >= REPORT_LIMITS.repairMs) {
          this.#confirm(gateway, id);
          this.#note({ id, state: "programmed" }, changed);
        } else if (age >= REPORT_LIMITS.unconfirmedMs && !keepsStatus && this.#told.has(id)) {
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

  /** Keeps a report on an item of the pod's own Gateway, or on an unknown item up to a limit. */
  #keep({ gateway }: ReportingReplica, state: ReplicaState, report: VersionReport): boolean {
    const home = this.#options.gatewayOf(report.id);
    if (home !== undefined && home !== gateway) return false;
    if (home === undefined) {
      const cost = costOf(report.id, report);
      if (state.ahead + cost > REPORT_LIMITS.ahead) this.#recount(state);
      // The digests differ then, and the pod will be asked for its reports again.
      if (state.ahead + cost > REPORT_LIMITS.ahead) return false;
      state.ahead += cost;
    }
    state.reports.set(report);
    return true;
  }

  /** Counts again: many of the items that were unknown may be in the plan now. */
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
      if (verdict === undefined) {
        if (typeof this.#told.get(id) === "object") this.#doubt(gateway, [id], true);
        continue;
      }
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

  #doubt(gateway: string, ids: readonly ItemId[], keepsStatus: boolean): void {
    if (ids.length === 0) return;
    const since = this.#now();
    const unconfirmed = this.#unconfirmed.get(gateway) ?? new Map<ItemId, Unconfirmed>();
    this.#unconfirmed.set(gateway, unconfirmed);
    for (const id of ids) {
      const known = unconfirmed.get(id);
      if (known === undefined || (known.keepsStatus && !keepsStatus))
        unconfirmed.set(id, { since, keepsStatus });
    }
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
