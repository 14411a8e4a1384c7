import type { Key } from "../api/key.ts";
import type { PlanDelta, PlanItem, PortItem } from "../plan/plan.ts";

/** Which Gateways are served on which ports, read off the plan. */
export class ServedGateways {
  readonly #ports: Map<Key, Map<string, PortItem>> = new Map();
  readonly #gatewayOf: Map<string, Key> = new Map();

  /** Gateways whose ports changed, or that came or went. */
  follow({ upserts, removes }: PlanDelta): ReadonlySet<Key> {
    const changed = new Set<Key>();
    for (const item of upserts)
      if (item.type === "gateway" || item.type === "port") this.#enter(item, changed);
    for (const id of removes) {
      const gateway = this.#gatewayOf.get(id);
      if (gateway === undefined) continue;
      this.#gatewayOf.delete(id);
      if (id.startsWith("gateway:")) this.#ports.delete(gateway);
      else this.#ports.get(gateway)?.delete(id);
      changed.add(gateway);
    }
    return changed;
  }

  portsOf(gateway: Key): readonly PortItem[] | undefined {
    const ports = this.#ports.get(gateway);
    return ports === undefined ? undefined : [...ports.values()];
  }

  #enter(item: Extract<PlanItem, { type: "gateway" | "port" }>, changed: Set<Key>): void {
    const gateway: Key = `Gateway/${item.gateway}`;
    const ports = this.#ports.get(gateway) ?? new Map<string, PortItem>();
    this.#ports.set(gateway, ports);
    this.#gatewayOf.set(item.id, gateway);
    if (item.type === "port") ports.set(item.id, item);
    changed.add(gateway);
  }
}
