import type { ItemId } from "../../plan/plan.ts";
import { certificateProblem } from "./compile/certificates.ts";
import type { Model } from "./compile/model.ts";

/** Checked per turn of the event loop, so that thousands of certificates block nothing else. */
const CERTIFICATES_PER_TURN = 16;

/** An absent problem: the certificate is good. */
export interface Checked {
  readonly problem: string | undefined;
}

/**
 * Which certificates can be served: those that passed the check and got no NACK since.
 */
export class CertificateStatus {
  readonly #model: Model;
  readonly #checked: Map<ItemId, Checked> = new Map();
  /** Certificates with a NACK of an Envoy. */
  readonly #refused: Set<ItemId> = new Set();
  readonly #unchecked: Set<ItemId> = new Set();

  constructor(model: Model) {
    this.#model = model;
  }

  get hasUnchecked(): boolean {
    return this.#unchecked.size > 0;
  }

  isUnchecked(id: ItemId): boolean {
    return this.#unchecked.has(id);
  }

  /** Adds a certificate to those that are checked later. */
  add(id: ItemId): void {
    this.#unchecked.add(id);
  }

  /** The certificate has changed or is gone. */
  touched(id: ItemId): void {
    this.#checked.delete(id);
    this.#refused.delete(id);
  }

  delete(id: ItemId): void {
    this.touched(id);
    this.#unchecked.delete(id);
  }

  refuse(id: ItemId): void {
    this.#refused.add(id);
  }

  /** Checks the certificate now if it was not checked yet. */
  problem(id: ItemId): string | undefined {
    const item = this.#model.get("certificate", id);
    if (item === undefined) return "there is no such certificate";
    const known = this.#checked.get(id) ?? { problem: certificateProblem(item) };
    this.#checked.set(id, known);
    return known.problem;
  }

  /** Undefined while the certificate is not checked. */
  known(id: ItemId): Checked | undefined {
    return this.#refused.has(id)
      ? { problem: "the data plane refuses the certificate" }
      : this.#checked.get(id);
  }

  /** Checks some of the waiting certificates, and returns them. */
  checkSome(): readonly ItemId[] {
    const some = [...this.#unchecked.values().take(CERTIFICATES_PER_TURN)];
    for (const id of some) {
      this.#unchecked.delete(id);
      this.problem(id);
    }
    return some;
  }
}
