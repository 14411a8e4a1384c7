import type { HostItem, ItemId, PlanDelta } from "../../plan/plan.ts";

/** Which Gateways have a gRPC route, followed delta by delta. */
export class GrpcUse {
  readonly #hosts: Map<ItemId, string> = new Map();
  readonly #counts: Map<string, number> = new Map();

  usedBy(gateway: string): boolean {
    return (this.#counts.get(gateway) ?? 0) > 0;
  }

  /** Gateways whose answer may have changed. */
  apply({ upserts, removes }: PlanDelta): readonly string[] {
    const touched: string[] = [];
    const leave = (id: ItemId): void => {
      const gateway = this.#hosts.get(id);
      if (gateway === undefined) return;
      this.#hosts.delete(id);
      this.#counts.set(gateway, (this.#counts.get(gateway) ?? 1) - 1);
      touched.push(gateway);
    };
    for (const id of removes) leave(id);
    for (const item of upserts) {
      if (item.type !== "host") continue;
      leave(item.id);
      if (!hasGrpc(item)) continue;
      this.#hosts.set(item.id, item.gateway);
      this.#counts.set(item.gateway, (this.#counts.get(item.gateway) ?? 0) + 1);
      touched.push(item.gateway);
    }
    return touched;
  }
}

function hasGrpc({ rules }: HostItem): boolean {
  return rules.some(({ origin }) => origin.kind === "GRPCRoute");
}
