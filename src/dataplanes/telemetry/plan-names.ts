import type { BackendItem } from "../../plan/backend.ts";
import type { ItemId, OwnerRef, PlanDelta } from "../../plan/plan.ts";

/** A listener as its owner knows it. */
export interface ListenerName extends OwnerRef {
  readonly section: string;
}

/** What plan items stand for, for as long as the plan has them. */
export class PlanNames {
  readonly #listeners: Map<ItemId, ListenerName> = new Map();
  readonly #services: Map<ItemId, BackendItem["service"]> = new Map();

  apply({ upserts, removes }: PlanDelta): void {
    for (const id of removes) {
      this.#listeners.delete(id);
      this.#services.delete(id);
    }
    for (const item of upserts) {
      if (item.type === "listener") {
        const { kind, namespace, name } = item.owner;
        this.#listeners.set(item.id, { kind, namespace, name, section: item.section });
      } else if (item.type === "backend") this.#services.set(item.id, item.service);
    }
  }

  listener(id: ItemId | undefined): ListenerName | undefined {
    return id === undefined ? undefined : this.#listeners.get(id);
  }

  service(id: ItemId | undefined): BackendItem["service"] | undefined {
    return id === undefined ? undefined : this.#services.get(id);
  }
}
