import type { ItemId, PlanItem } from "../../plan/plan.ts";

/** Guards and backends that have left the plan a moment ago. */
export class RetiredItems {
  readonly #lingerMs: number;
  readonly #items: Map<ItemId, { readonly item: PlanItem; readonly timer: NodeJS.Timeout }> = new Map();

  constructor(lingerMs: number) {
    this.#lingerMs = lingerMs;
  }

  add(item: PlanItem): void {
    if (item.type !== "guard" && item.type !== "backend") return;
    clearTimeout(this.#items.get(item.id)?.timer);
    const timer = setTimeout(() => this.#items.delete(item.id), this.#lingerMs).unref();
    this.#items.set(item.id, { item, timer });
  }

  get<T extends PlanItem["type"]>(type: T, id: ItemId): Extract<PlanItem, { type: T }> | undefined {
    const item = this.#items.get(id)?.item;
    return item?.type === type ? (item as Extract<PlanItem, { type: T }>) : undefined;
  }

  close(): void {
    for (const { timer } of this.#items.values()) clearTimeout(timer);
    this.#items.clear();
  }
}
