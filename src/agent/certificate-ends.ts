import { X509Certificate } from "node:crypto";
import { Gauge, type Registry } from "prom-client";
import type { CertificateItem } from "../plan/certificate.ts";
import type { ItemId, PlanDelta } from "../plan/plan.ts";

/** When the certificates of the plan end; each is read once, when somebody first asks. */
export class CertificateEnds {
  readonly #chains: Map<ItemId, string> = new Map();
  readonly #ends: Map<ItemId, number> = new Map();

  constructor(registry: Registry) {
    const ends = this;
    new Gauge({
      name: "mergeway_certificate_not_after_seconds",
      help: "When the certificate of a listener ends, in seconds since the epoch",
      labelNames: ["namespace", "name"],
      registers: [registry],
      collect() {
        ends.#show(this);
      },
    });
  }

  apply({ upserts, removes }: PlanDelta): void {
    for (const id of removes) this.#forget(id);
    for (const item of upserts) if (item.type === "certificate") this.#learn(item);
  }

  #learn({ id, chain }: CertificateItem): void {
    if (this.#chains.get(id) === chain) return;
    this.#forget(id);
    this.#chains.set(id, chain);
  }

  #forget(id: ItemId): void {
    this.#chains.delete(id);
    this.#ends.delete(id);
  }

  #show(gauge: Gauge): void {
    gauge.reset();
    for (const [id, chain] of this.#chains) {
      const end = this.#ends.get(id) ?? endOf(chain);
      this.#ends.set(id, end);
      // The id ends with the Secret: `certificate:GATEWAY:namespace/name`.
      const [namespace = "", name = ""] = id.slice(id.lastIndexOf(":") + 1).split("/");
      if (!Number.isNaN(end)) gauge.set({ namespace, name }, end);
    }
  }
}

function endOf(chain: string): number {
  try {
    return Date.parse(new X509Certificate(chain).validTo) / 1_000;
  } catch {
    return Number.NaN;
  }
}
