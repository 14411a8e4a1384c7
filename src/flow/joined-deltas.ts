import type { EngineDelta } from "../engine/engine.ts";
import type { PlanItem } from "../plan/plan.ts";

export function changesPlan({ plan }: EngineDelta): boolean {
  return plan.upserts.length > 0 || plan.removes.length > 0;
}

export function isSomething(delta: EngineDelta): boolean {
  return changesPlan(delta) || delta.verdicts.size > 0;
}

/** Later deltas overrule earlier ones. */
export function joined(deltas: readonly EngineDelta[]): EngineDelta {
  const upserts = new Map<string, PlanItem>();
  const removes = new Set<string>();
  for (const { plan } of deltas) {
    for (const id of plan.removes) {
      upserts.delete(id);
      removes.add(id);
    }
    for (const item of plan.upserts) {
      removes.delete(item.id);
      upserts.set(item.id, item);
    }
  }
  return {
    plan: { upserts: [...upserts.values()], removes: [...removes] },
    verdicts: new Map(deltas.flatMap(({ verdicts }) => [...verdicts])),
  };
}
