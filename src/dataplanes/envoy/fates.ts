/**
 * What became of ports, listeners and certificates of one Gateway, as its Envoys answer. Every upsert is answered by a report, and so is
 * every later change.
 *
 * - A certificate is programmed when nothing in it would be refused; one that an Envoy refuses all the same is rejected.
 * - A port is programmed when an Envoy has taken its listener.
 * - A listener shares its port's fate; beside that it is programmed when an Envoy has taken all of its scopes (and the table of wildcards, if
 *   it has any), and rejected as soon as one of them is refused. One that terminates TLS also needs a good certificate.
 */

import type { ItemId, ListenerItem, PlanDelta } from "../../plan/plan.ts";
import type { ItemReport } from "../dataplane.ts";
import { ReportQueue, reportFor } from "../report-queue.ts";
import type { Answer } from "./ads/ads-stream.ts";
import { certificateProblem } from "./compile/certificates.ts";
import { isHttp, type Model } from "./compile/model.ts";

/** Checking thousands of certificates must not stop everything else. */
const CERTIFICATES_PER_TURN = 16;
const TABLE = "";

/** What each Envoy said, by its name. */
type Verdicts = Map<string, string | undefined>;

interface ListenerFate {
  /** Scopes that no Envoy has answered for. */
  readonly pending: Set<string>;
  /** By scope, then by Envoy. */
  readonly refused: Map<string, Map<string, string>>;
}

export class Fates {
  readonly #model: Model;
  readonly #ports: Map<ItemId, Verdicts> = new Map();
  readonly #listeners: Map<ItemId, ListenerFate> = new Map();
  /** Which listener a scope belongs to. */
  readonly #scopes: Map<string, ItemId> = new Map();
  readonly #awaitTable: Set<ItemId> = new Set();
  readonly #certificates: Map<ItemId, { readonly problem: string | undefined }> = new Map();
  readonly #refused: Set<ItemId> = new Set();
  readonly #unchecked: Set<ItemId> = new Set();
  readonly #usersOf: (certificate: ItemId) => Iterable<ItemId>;
  readonly #reports: ReportQueue = new ReportQueue(
    (id) => this.#reportOf(id),
    () => this.#checkSome(),
  );

  constructor(model: Model, usersOf: (certificate: ItemId) => Iterable<ItemId>) {
    this.#model = model;
    this.#usersOf = usersOf;
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onReport(handler);
  }

  /** After the delta has been compiled. */
  applied(delta: PlanDelta): void {
    for (const id of delta.removes) {
      for (const known of [this.#ports, this.#listeners, this.#certificates]) known.delete(id);
      for (const known of [this.#unchecked, this.#awaitTable, this.#refused]) known.delete(id);
      this.#reports.forget(id);
    }
    for (const item of delta.upserts) {
      this.#reports.renew(item.id);
      if (item.type === "certificate") {
        this.#unchecked.add(item.id);
      } else if (item.type === "listener") this.#reports.change(item.id);
      else if (item.type === "port") this.#portTouched(item.id);
    }
    if (this.#unchecked.size > 0) this.#reports.wake();
  }

  scopeChanged(scope: string, listener: ItemId): void {
    const before = this.#scopes.get(scope);
    if (before !== undefined && before !== listener) this.scopeRemoved(scope);
    this.#scopes.set(scope, listener);
    const fate = this.#listener(listener);
    fate.pending.add(scope);
    fate.refused.delete(scope);
  }

  scopeRemoved(scope: string): void {
    const listener = this.#scopes.get(scope);
    this.#scopes.delete(scope);
    const fate = listener === undefined ? undefined : this.#listeners.get(listener);
    fate?.pending.delete(scope);
    fate?.refused.delete(scope);
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

  /** An Envoy has gone. What it served, others serve, or it will again; of what it refused nothing is known any more. */
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

  /** The only Envoy there is does not run: nothing is served until it has answered again. */
  unserved(replica: string, problem: string): void {
    for (const { id } of this.#model.ports()) {
      const verdicts = this.#ports.get(id) ?? new Map<string, string | undefined>();
      this.#ports.set(id, verdicts.set(replica, problem));
      this.#portTouched(id);
    }
  }

  /** The answer of an Envoy for the current version of a resource. */
  answered(replica: string, { kind, name, problem }: Answer): void {
    if (kind === "listener") {
      const verdicts = this.#ports.get(name) ?? new Map<string, string | undefined>();
      this.#ports.set(name, verdicts);
      verdicts.set(replica, problem === undefined ? undefined : this.#portProblem(name, problem));
      this.#portTouched(name);
    } else if (kind === "scope") {
      const listener = this.#scopes.get(name);
      if (listener === undefined) return;
      this.#settle(this.#listener(listener), name, replica, problem);
      this.#reports.change(listener);
    } else if (kind === "extension") {
      for (const listener of this.#awaitTable) {
        this.#settle(this.#listener(listener), TABLE, replica, problem);
        this.#reports.change(listener);
      }
      this.#awaitTable.clear();
    }
  }

  #settle(fate: ListenerFate, scope: string, replica: string, problem: string | undefined): void {
    fate.pending.delete(scope);
    if (problem === undefined) {
      cleared(fate.refused, scope, replica);
      return;
    }
    const said = fate.refused.get(scope) ?? new Map<string, string>();
    fate.refused.set(scope, said.set(replica, readable(problem)));
  }

  /** It is another one now, or none. */
  certificateTouched(id: ItemId): void {
    this.#certificates.delete(id);
    this.#refused.delete(id);
  }

  /** Checked now if it has not been. */
  certificateProblem(id: ItemId): string | undefined {
    const item = this.#model.get("certificate", id);
    if (item === undefined) return "there is no such certificate";
    const known = this.#certificates.get(id) ?? { problem: certificateProblem(item) };
    this.#certificates.set(id, known);
    return known.problem;
  }

  /** Said by an Envoy; what it has of the certificate from before goes on being shown. */
  certificateRefused(id: ItemId): void {
    this.#refused.add(id);
    this.#certificateChanged(id);
  }

  #knownProblem(id: ItemId): { readonly problem: string | undefined } | undefined {
    return this.#refused.has(id) ? { problem: "Envoy refuses the certificate" } : this.#certificates.get(id);
  }

  /** Envoy's text names its own resources; people know their port. */
  #portProblem(id: ItemId, text: string): string {
    const number = this.#model.get("port", id)?.port;
    const [, why] = /cannot bind '[^']*': ([^\n]*)/.exec(text) ?? [];
    return `port ${number} cannot be opened: ${why?.toLowerCase() ?? "Envoy refuses its configuration"}`;
  }

  #listener(id: ItemId): ListenerFate {
    const fate = this.#listeners.get(id) ?? { pending: new Set(), refused: new Map() };
    this.#listeners.set(id, fate);
    return fate;
  }

  #portTouched(port: ItemId): void {
    this.#reports.change(port);
    for (const { id } of this.#model.httpListeners(port)) this.#reports.change(id);
    for (const { id } of this.#model.streamListeners(port)) this.#reports.change(id);
  }

  #certificateChanged(id: ItemId): void {
    this.#reports.change(id);
    for (const listener of this.#usersOf(id)) this.#reports.change(listener);
  }

  /** Whether there are more. */
  #checkSome(): boolean {
    let left = CERTIFICATES_PER_TURN;
    for (const id of this.#unchecked) {
      if (left-- === 0) return true;
      this.#unchecked.delete(id);
      this.certificateProblem(id);
      this.#certificateChanged(id);
    }
    return false;
  }

  /** Undefined while the fate is not known yet. */
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
        const known = this.#knownProblem(id);
        return known === undefined ? undefined : reportFor(id, "InvalidCertificate", known.problem);
      }
      case "listener":
        return this.#listenerReport(item);
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
    if (tls?.mode === "Terminate") {
      const problems = tls.certificates.map((certificate) => this.#knownProblem(certificate));
      if (
        tls.certificates.some(
          (certificate, index) => problems[index] === undefined && this.#unchecked.has(certificate),
        )
      )
        return undefined;
      if (!problems.some((known) => known !== undefined && known.problem === undefined)) {
        const problem = problems.findLast((known) => known !== undefined)?.problem;
        return reportFor(id, "InvalidCertificate", problem ?? "the listener has no certificate");
      }
    }
    if (!isHttp(listener)) return reportFor(id, "", undefined);
    const fate = this.#listeners.get(id);
    if (fate === undefined || fate.pending.size > 0) return undefined;
    const [refusal] = fate.refused.values();
    return reportFor(id, "Refused", refusal === undefined ? undefined : problemOf(refusal));
  }
}

/** Rejected as soon as one Envoy rejects, programmed as soon as one serves. */
function problemOf(verdicts: ReadonlyMap<string, string | undefined>): string | undefined {
  for (const problem of verdicts.values()) if (problem !== undefined) return problem;
  return undefined;
}

function cleared(refused: Map<string, Map<string, string>>, scope: string, replica: string): void {
  const said = refused.get(scope);
  said?.delete(replica);
  if (said?.size === 0) refused.delete(scope);
}

const LONGEST_MESSAGE = 400;

/** Envoy's text in one line, without the marks that its library puts before messages. */
function readable(problem: string): string {
  return problem
    .replace(/goo\.gle\/debug\w*\s*:?/g, "")
    .replace(/\s+/g, " ")
    .replace(/^[\s:]+/, "")
    .slice(0, LONGEST_MESSAGE);
}
