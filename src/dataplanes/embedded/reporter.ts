/**
 * The programming status of ports, listeners and certificates. Every upsert is answered by a
 * report, and so is every later change.
 *
 * - A port is programmed when it is open, rejected while it cannot be opened.
 * - A certificate is programmed when its chain and key can be read and belong together.
 * - A listener has the status of its port. One that terminates TLS also needs at least one
 *   programmed certificate.
 */

import type { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemReport } from "../../plan/item-report.ts";
import type { ItemId, ListenerItem, PlanDelta } from "../../plan/plan.ts";
import { ReportQueue, reportFor } from "../report-queue.ts";
import { type PortOutcome, samePlace } from "./ports/ports.ts";
import { checkCertificate } from "./sockets/check-certificate.ts";

/** Checking thousands of certificates must not keep the thread from serving. */
const CERTIFICATES_PER_TURN = 16;

export class Reporter {
  readonly #table: RoutingTable;
  readonly #ports: Map<ItemId, PortOutcome> = new Map();
  readonly #certificates: Map<ItemId, { readonly problem: string | undefined }> = new Map();
  readonly #users: Map<ItemId, Set<ItemId>> = new Map();
  readonly #unchecked: Set<ItemId> = new Set();
  readonly #reports: ReportQueue = new ReportQueue(
    (id) => this.#reportOf(id),
    () => this.#checkSome(),
  );

  constructor(table: RoutingTable) {
    this.#table = table;
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onReport(handler);
  }

  /** To be called before the table takes the delta: what goes away is still known then. */
  beforeApply(delta: PlanDelta): void {
    for (const id of [...delta.removes, ...delta.upserts.map((item) => item.id)]) {
      const listener = this.#table.get("listener", id);
      for (const certificate of listener?.tls?.certificates ?? []) this.#users.get(certificate)?.delete(id);
    }
    for (const item of delta.upserts) {
      const before = item.type === "port" ? this.#table.get("port", item.id) : undefined;
      if (item.type === "port" && before !== undefined && !samePlace(before, item))
        this.#ports.delete(item.id);
    }
    for (const id of delta.removes) {
      for (const known of [this.#ports, this.#certificates, this.#users]) known.delete(id);
      this.#unchecked.delete(id);
      this.#reports.forget(id);
    }
  }

  afterApply(delta: PlanDelta): void {
    for (const item of delta.upserts) {
      // With workers the plan may have moved on since: a later delta has its own report.
      if (this.#table.get(item.type, item.id) !== item) continue;
      this.#reports.renew(item.id);
      if (item.type === "listener") {
        for (const certificate of item.tls?.certificates ?? []) {
          const users = this.#users.get(certificate) ?? new Set();
          this.#users.set(certificate, users.add(item.id));
        }
        this.#reports.change(item.id);
      } else if (item.type === "certificate") this.#unchecked.add(item.id);
      else if (item.type === "port") this.#changePort(item.id);
    }
    if (this.#unchecked.size > 0) this.#reports.wake();
  }

  portOutcome(port: ItemId, outcome: PortOutcome): void {
    if (this.#table.get("port", port) === undefined) return;
    this.#ports.set(port, outcome);
    this.#changePort(port);
  }

  #changePort(port: ItemId): void {
    this.#reports.change(port);
    for (const listener of this.#table.listenersOf(port)) this.#reports.change(listener.id);
  }

  /** Whether there are more. */
  #checkSome(): boolean {
    let left = CERTIFICATES_PER_TURN;
    for (const id of this.#unchecked) {
      if (left-- === 0) return true;
      this.#unchecked.delete(id);
      const certificate = this.#table.get("certificate", id);
      if (certificate === undefined) continue;
      this.#certificates.set(id, { problem: checkCertificate(certificate) });
      this.#reports.change(id);
      for (const listener of this.#users.get(id) ?? []) this.#reports.change(listener);
    }
    return false;
  }

  /** Undefined while the item is pending. */
  #reportOf(id: ItemId): ItemReport | undefined {
    const listener = this.#table.get("listener", id);
    if (listener !== undefined) return this.#listenerReport(listener);
    const certificate = this.#certificates.get(id);
    if (certificate !== undefined) return reportFor(id, "InvalidCertificate", certificate.problem);
    const port = this.#ports.get(id);
    return port === undefined
      ? undefined
      : reportFor(id, "PortUnavailable", port.bound ? undefined : port.message);
  }

  #listenerReport({ id, port, tls }: ListenerItem): ItemReport | undefined {
    const outcome = this.#ports.get(port);
    if (outcome === undefined) return undefined;
    if (!outcome.bound) return reportFor(id, "PortUnavailable", outcome.message);
    if (tls === undefined || tls.mode === "Passthrough") return reportFor(id, "", undefined);
    let problem = "the listener has no certificate";
    for (const reference of tls.certificates) {
      const certificate = this.#certificates.get(reference);
      if (certificate === undefined) {
        if (this.#unchecked.has(reference)) return undefined;
      } else if (certificate.problem === undefined) return reportFor(id, "", undefined);
      else problem = certificate.problem;
    }
    return reportFor(id, "InvalidCertificate", problem);
  }
}
