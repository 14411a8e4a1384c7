import { setTimeout as pause } from "node:timers/promises";
import { type Bed, ok } from "./bed.ts";

interface Gateways {
  readonly items: readonly { readonly metadata: { readonly namespace: string; readonly name: string } }[];
}

/** Gives every Gateway of a cluster a TenantPolicy that allows everything. */
export class AllowAll {
  readonly #bed: Bed;
  readonly #known: Set<string> = new Set();

  constructor(bed: Bed) {
    this.#bed = bed;
  }

  /** How many Gateways have had one. */
  get gateways(): number {
    return this.#known.size;
  }

  /** Until the signal; a Gateway that is gone before its policy comes does not matter. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#round().catch(() => undefined);
      await pause(1000, undefined, { signal }).catch(() => undefined);
    }
  }

  async #round(): Promise<void> {
    const listed = await ok(this.#bed.kubectl(["get", "gateways", "--all-namespaces", "-o", "json"]));
    for (const { metadata } of (JSON.parse(listed) as Gateways).items) {
      const { namespace, name } = metadata;
      if (this.#known.has(`${namespace}/${name}`)) continue;
      const policy = {
        apiVersion: "mergeway.dev/v1alpha1",
        kind: "TenantPolicy",
        metadata: { name, namespace },
        spec: {
          targetRefs: [{ kind: "Gateway", name }],
          rules: [{ namespaceSelector: {}, hostnames: { allow: ["*"] } }],
        },
      };
      await ok(this.#bed.kubectl(["apply", "-f", "-"], JSON.stringify(policy)));
      this.#known.add(`${namespace}/${name}`);
    }
  }
}
