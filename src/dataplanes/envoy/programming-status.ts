/**
 * The status of a Gateway's items, as its Envoys answer: an ACK makes an item programmed, a NACK
 * rejects it. Every upsert of a port, listener or certificate is answered by a report, and so is
 * every later change; hosts and backends are reported once something of them is refused.
 *
 * - A certificate is programmed when nothing in it would be refused; one that an Envoy refuses all
 *   the same is rejected.
 * - A port is programmed when an Envoy has taken its listener.
 * - A listener shares its port's status; beside that it is programmed when an Envoy has taken all
 *   of its scopes (and the table of wildcards, if it has any), and rejected as soon as one of them
 *   is refused as a whole. One that terminates TLS also needs a good certificate.
 * - A host is rejected while rules of it are refused, and a backend while its cluster or endpoints
 *   are.
 *
 * The text of a NACK quotes whole resources of all tenants. No part of it goes into a report.
 */

import type { ItemReport } from "../../plan/item-report.ts";
import type { ItemId, ListenerItem, PlanDelta } from "../../plan/plan.ts";
import { ReportQueue, reportFor } from "../report-queue.ts";
import type { Answer } from "./ads/ads-stream.ts";
import { CertificateStatus } from "./certificate-status.ts";
import { isHttp, type Model } from "./compile/model.ts";
import { isUnconfinable } from "./compile/own-clients.ts";
import type { Offender } from "./containment/offender-search.ts";
import { refusedRulesOf } from "./refused-rules.ts";
import { socketProblem } from "./socket-problem.ts";

const TABLE = "";

/** The answer of each Envoy, by node id. */
type Verdicts = Map<string, string | undefined>;

interface ListenerStatus {
  /** Scopes that no Envoy has answered for. */
  readonly pending: Set<string>;
  /** Names of Envoys, by scope. */
  readonly refused: Map<string, Set<string>>;
}

export interface ProgrammingStatusOptions {
  readonly model: Model;
  /** Listeners that show a certificate. */
  readonly usersOf: (certificate: ItemId) => Iterable<ItemId>;
  readonly refusedRules: (host: ItemId) => Iterable<Offender>;
  readonly isRefusedBackend: (id: ItemId) => boolean;
  readonly isRefusedListener: (id: ItemId) => boolean;
}

export class ProgrammingStatus {
  readonly #options: ProgrammingStatusOptions;
  readonly #model: Model;
  readonly #ports: Map<ItemId, Verdicts> = new Map();
  readonly #listeners: Map<ItemId, ListenerStatus> = new Map();
  /** Which listener a scope belongs to. */
  readonly #scopes: Map<string, ItemId> = new Map();
  readonly #awaitTable: Set<ItemId> = new Set();
  readonly #certificates: CertificateStatus;
  /** Hosts and backends that were ever rejected: only they are reported. */
  readonly #blemished: Set<ItemId> = new Set();
  readonly #reports: ReportQueue = new ReportQueue(
    (id) => this.#reportOf(id),
    () => this.#checkSome(),
  );

  constructor(options: ProgrammingStatusOptions) {
    this.#options = options;
    this.#model = options.model;
    this.#certificates = new CertificateStatus(options.model);
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onReport(handler);
  }

  /** After the delta has been compiled. */
  applied(delta: PlanDelta): void {
    for (const id of delta.removes) {
      for (const known of [this.#ports, this.#listeners, this.#certificates]) known.delete(id);
      for (const known of [this.#awaitTable, this.#blemished]) known.delete(id);
      this.#reports.forget(id);
    }
    for (const item of delta.upserts) {
      this.#reports.renew(item.id);
      if (item.type === "certificate") {
        this.#certificates.add(item.id);
      } else if (item.type === "port") this.#portTouched(item.id);
      else if (item.type === "listener" || this.#blemished.has(item.id)) this.#reports.change(item.id);
    }
    if (this.#certificates.hasUnchecked) this.#reports.wake();
  }

  scopeChanged(scope: string, listener: ItemId): void {
    const before = this.#scopes.get(scope);
    if (before !== undefined && before !== listener) this.scopeRemoved(scope);
    this.#scopes.set(scope, listener);
    const status = this.#listener(listener);
    status.pending.add(scope);
    status.refused.delete(scope);
  }

  scopeRemoved(scope: string): void {
    const listener = this.#scopes.get(scope);
    this.#scopes.delete(scope);
    const status = listener === undefined ? undefined : this.#listeners.get(listener);
    status?.pending.delete(scope);
    status?.refused.delete(scope);
    if (listener !== undefined) this.#reports.change(listener);
  }

  /** The listener is in the table of wildcards now, which has to be taken again. */
  tableChanged(listener: ItemId): void {
    this.#listener(listener).pending.add(TABLE);
    this.#awaitTable.add(listener);
  }

  portChanged(port: ItemId): void {
    this.#ports.delete(port);
  }

  /** No Envoy needs to be asked. */
  portImpossible(port: ItemId, problem: string): void {
    this.#ports.set(port, new Map([["", problem]]));
  }

  /**
   * An Envoy has disconnected. Its ACKs stay valid: others serve the same, or it will reconnect.
   * Its NACKs are void.
   */
  replicaLeft(replica: string): void {
    for (const [port, verdicts] of this.#ports) {
      if (verdicts.get(replica) === undefined) continue;
      verdicts.delete(replica);
      this.#portTouched(port);
    }
    for (const [listener, { refused }] of this.#listeners) {
      if (refused.size === 0) continue;
      for (const scope of refused.keys()) cleared(refused, scope, replica);
      this.#reports.change(listener);
    }
  }

  /** The only Envoy does not run: nothing is programmed until it has answered again. */
  unserved(replica: string, problem: string): void {
    for (const { id } of this.#model.ports()) {
      this.#verdicts(id).set(replica, problem);
      this.#portTouched(id);
    }
  }

  /** An ACK of the current version of a resource. */
  acknowledged(replica: string, { kind, name }: Answer): void {
    if (kind === "listener") {
      this.#verdicts(name).set(replica, undefined);
      this.#portTouched(name);
    } else if (kind === "scope") {
      const listener = this.#scopes.get(name);
      if (listener === undefined) return;
      this.#settle(listener, name);
      cleared(this.#listener(listener).refused, name, replica);
    } else if (kind === "extension") {
      for (const listener of this.#awaitTable) this.#settle(listener, TABLE);
      this.#awaitTable.clear();
      for (const [listener, { refused }] of this.#listeners) {
        if (!refused.has(TABLE)) continue;
        cleared(refused, TABLE, replica);
        this.#reports.change(listener);
      }
    }
  }

  portRefused(replica: string, port: ItemId, text: string): void {
    this.#verdicts(port).set(replica, this.#portProblem(port, text));
    this.#portTouched(port);
  }

  /** A NACK of a scope for which no rule is to blame. */
  scopeRefused(replica: string, scope: string): void {
    const listener = this.#scopes.get(scope);
    if (listener !== undefined) this.#refuse(replica, listener, scope);
  }

  tableRefused(replica: string): void {
    for (const listener of this.#awaitTable) this.#refuse(replica, listener, TABLE);
    this.#awaitTable.clear();
  }

  /** A NACK of the cluster that a port with UDP routes forwards to. */
  streamsRefused(port: ItemId): void {
    this.#verdicts(port).set("", this.#portProblem(port, ""));
    this.#portTouched(port);
  }

  listenerChanged(id: ItemId): void {
    this.#reports.change(id);
  }

  hostChanged(id: ItemId): void {
    if (this.#options.refusedRules(id)[Symbol.iterator]().next().done !== true) this.#blemished.add(id);
    if (this.#blemished.has(id)) this.#reports.change(id);
  }

  backendChanged(id: ItemId): void {
    this.#blemished.add(id);
    this.#reports.change(id);
  }

  #verdicts(port: ItemId): Verdicts {
    const verdicts = this.#ports.get(port) ?? new Map<string, string | undefined>();
    this.#ports.set(port, verdicts);
    return verdicts;
  }

  #settle(listener: ItemId, scope: string): void {
    this.#listener(listener).pending.delete(scope);
    this.#reports.change(listener);
  }

  #refuse(replica: string, listener: ItemId, scope: string): void {
    this.#settle(listener, scope);
    const { refused } = this.#listener(listener);
    refused.set(scope, (refused.get(scope) ?? new Set()).add(replica));
  }

  /** The certificate has changed or is gone. */
  certificateTouched(id: ItemId): void {
    this.#certificates.touched(id);
  }

  /** Checks the certificate now if it was not checked yet. */
  certificateProblem(id: ItemId): string | undefined {
    return this.#certificates.problem(id);
  }

  /** A NACK of the certificate. Envoy goes on showing the version that it has. */
  certificateRefused(id: ItemId): void {
    this.#certificates.refuse(id);
    this.#certificateChanged(id);
  }

  /** Reports why a socket cannot be bound, and nothing else of Envoy's text. */
  #portProblem(id: ItemId, text: string): string {
    const number = this.#model.get("port", id)?.port;
    return `port ${number} cannot be opened: ${socketProblem(text) ?? "the data plane refuses its configuration"}`;
  }

  #listener(id: ItemId): ListenerStatus {
    const status = this.#listeners.get(id) ?? { pending: new Set(), refused: new Map() };
    this.#listeners.set(id, status);
    return status;
  }

  #portTouched(port: ItemId): void {
    this.#reports.change(port);
    for (const { id } of this.#model.httpListeners(port)) this.#reports.change(id);
    for (const { id } of this.#model.streamListeners(port)) this.#reports.change(id);
  }

  #certificateChanged(id: ItemId): void {
    this.#reports.change(id);
    for (const listener of this.#options.usersOf(id)) this.#reports.change(listener);
  }

  /** Returns whether there are more. */
  #checkSome(): boolean {
    for (const id of this.#certificates.checkSome()) this.#certificateChanged(id);
    return this.#certificates.hasUnchecked;
  }

  /** Undefined while the item is pending. */
  #reportOf(id: ItemId): ItemReport | undefined {
    const item = this.#model.item(id);
    switch (item?.type) {
      case "port": {
        const verdicts = this.#ports.get(id);
        return verdicts === undefined || verdicts.size === 0
          ? undefined
          : reportFor(id, "PortUnavailable", problemOf(verdicts));
      }
      case "certificate": {
        const known = this.#certificates.known(id);
        return known === undefined ? undefined : reportFor(id, "InvalidCertificate", known.problem);
      }
      case "listener":
        return this.#listenerReport(item);
      case "host":
        return this.#blemished.has(id) ? this.#hostReport(id) : undefined;
      case "backend":
        return this.#blemished.has(id) ? this.#backendReport(id) : undefined;
      default:
        return undefined;
    }
  }

  #listenerReport(listener: ListenerItem): ItemReport | undefined {
    const { id, port, tls } = listener;
    const verdicts = this.#ports.get(port);
    if (verdicts === undefined || verdicts.size === 0) return undefined;
    const portProblem = problemOf(verdicts);
    if (portProblem !== undefined) return reportFor(id, "PortUnavailable", portProblem);
    if (this.#options.isRefusedListener(id)) return reportFor(id, "Refused", LISTENER_CLOSED);
    if (isUnconfinable(listener)) return reportFor(id, "Refused", CLIENTS_UNCONFINABLE);
    if (tls?.mode === "Terminate") {
      const problems = tls.certificates.map((certificate) => this.#certificates.known(certificate));
      if (
        tls.certificates.some(
          (certificate, index) =>
            problems[index] === undefined && this.#certificates.isUnchecked(certificate),
        )
      )
        return undefined;
      if (!problems.some((known) => known !== undefined && known.problem === undefined)) {
        const problem = problems.findLast((known) => known !== undefined)?.problem;
        return reportFor(id, "InvalidCertificate", problem ?? "the listener has no certificate");
      }
    }
    if (!isHttp(listener)) return reportFor(id, "", undefined);
    const status = this.#listeners.get(id);
    if (status === undefined || status.pending.size > 0) return undefined;
    return reportFor(id, "Refused", status.refused.size === 0 ? undefined : LISTENER_REFUSED);
  }

  #hostReport(id: ItemId): ItemReport {
    const rules = refusedRulesOf(this.#options.refusedRules(id));
    if (rules.length === 0) return reportFor(id, "", undefined);
    return { ...reportFor(id, "Refused", HOST_REFUSED), rules };
  }

  #backendReport(id: ItemId): ItemReport {
    return reportFor(id, "Refused", this.#options.isRefusedBackend(id) ? BACKEND_REFUSED : undefined);
  }
}

const LISTENER_REFUSED = "the data plane refuses the configuration of a hostname of the listener";
const LISTENER_CLOSED = "the data plane refuses the listener: connections to it are closed";
const CLIENTS_UNCONFINABLE =
  "client certificates of a listener without a hostname would be those of the whole port: nobody is let in; give the listener a hostname, or ask for certificates at the Gateway";
const HOST_REFUSED = "the data plane refuses rules of the hostname";
const BACKEND_REFUSED = "the data plane refuses the configuration of the backend";
/** Rejected if one Envoy rejects, otherwise programmed if one serves. */
function problemOf(verdicts: ReadonlyMap<string, string | undefined>): string | undefined {
  for (const problem of verdicts.values()) if (problem !== undefined) return problem;
  return undefined;
}

function cleared(refused: Map<string, Set<string>>, scope: string, replica: string): void {
  const said = refused.get(scope);
  said?.delete(replica);
  if (said?.size === 0) refused.delete(scope);
}
