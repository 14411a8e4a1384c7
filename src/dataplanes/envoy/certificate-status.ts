import type { ItemId } from "../../plan/plan.ts";
import { certificateProblem } from "./compile/certificates.ts";
import type { Model } from "./compile/model.ts";

/** Checking thousands of certificates must not stop everything else. */
const CERTIFICATES_PER_TURN = 16;

/** An absent problem: the certificate is good. */
export interface Checked {
  readonly problem: string | undefined;
}

/**
 * Which certificates can be shown: those that were checked and found good, and not refused since.
 */
export class CertificateStatus {
  readonly #model: Model;
  readonly #checked: Map<ItemId, Checked> = new Map();
  /** By an Envoy. */
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

  /** There is a certificate to be checked when there is time. */
  add(id: ItemId): void {
    this.#unchecked.add(id);
  }

  /** It is another one now, or none. */
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

  /** Checked now if it has not been. */
  problem(id: ItemId): string | undefined {
    const item = this.#model.get("certificate", id);
    if (item === undefined) return "there is no such certificate";
    const known = this.#checked.get(id) ?? { problem: certificateProblem(item) };
    this.#checked.set(id, known);
    return known.problem;
  }

  /** Undefined while it is not known. */
  known(id: ItemId): Checked | undefined {
    return this.#refused.has(id)
      ? { problem: "the data plane refuses the certificate" }
      : this.#checked.get(id);
  }

  /** Checks some of those that wait for it, and returns them. */
  checkSome(): readonly ItemId[] {
    const some = [...this.#unchecked.values().take(CERTIFICATES_PER_TURN)];
    for (const id of some) {
      this.#unchecked.delete(id);
      this.problem(id);
    }
    return some;
  }
}
