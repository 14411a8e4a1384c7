import { type Key, keyFor } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { Verdict } from "../../engine/foundation/verdict.ts";
import { type PolicyView, refOf } from "../merged-state.ts";
import { currentVerdicts } from "./current-verdicts.ts";

/** Policies that may be read, by the objects that they are attached to. */
export class PolicyIndex {
  readonly #byTarget: Map<Key, PolicyView[]> = new Map();

  constructor(resources: ReadonlyMap<Key, Resource>) {
    for (const [key, policy] of resources) {
      if (policy.kind !== "TrafficPolicy" && policy.kind !== "ClientPolicy") continue;
      const { targetRefs, defaults = {}, overrides = {} } = policy.spec;
      const conditions = (policy.status?.ancestors ?? []).flatMap((ancestor) =>
        currentVerdicts(policy.metadata, ancestor.conditions),
      );
      for (const { kind, name, sectionName } of targetRefs) {
        const target = keyFor(kind as Resource["kind"], policy.metadata.namespace ?? "", name);
        const view: PolicyView = {
          ...refOf(key),
          ...(sectionName === undefined ? {} : { section: sectionName }),
          defaults: Object.keys(defaults),
          overrides: Object.keys(overrides),
          counts: !conditions.some(({ reason }) => reason === "Conflicted"),
          conditions: once(conditions),
        };
        const present = this.#byTarget.get(target);
        if (present === undefined) this.#byTarget.set(target, [view]);
        else present.push(view);
      }
    }
  }

  /** Without a section: those of the whole object. */
  at(object: Key, section: string | undefined): readonly PolicyView[] {
    return this.all(object).filter((policy) => policy.section === section);
  }

  all(object: Key): readonly PolicyView[] {
    return this.#byTarget.get(object) ?? [];
  }
}

/** A status says the same of each ancestor. */
function once(conditions: readonly Verdict[]): readonly Verdict[] {
  const texts = conditions.map(({ type, status, reason, message }) =>
    JSON.stringify([type, status, reason, message]),
  );
  return conditions.filter((_condition, index) => texts.indexOf(texts[index] ?? "") === index);
}
