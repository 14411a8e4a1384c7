import { partsOf } from "../api/key.ts";
import { isServing, type MergedListener } from "../engine/listeners/merge.ts";

export type CountedState = "serving" | "conflicted" | "refused";

export interface ListenerCount {
  /** `namespace/name` */
  readonly gateway: string;
  readonly state: CountedState;
  readonly count: number;
}

/** How many listeners of each Gateway are in which state; it names no tenant. */
export function listenerStates(listeners: Iterable<MergedListener>): readonly ListenerCount[] {
  const counts = new Map<string, ListenerCount>();
  for (const listener of listeners) {
    const { namespace, name } = partsOf(listener.gateway);
    const gateway = `${namespace}/${name}`;
    const state = stateOf(listener);
    const key = `${gateway} ${state}`;
    counts.set(key, { gateway, state, count: (counts.get(key)?.count ?? 0) + 1 });
  }
  return [...counts.values()];
}

function stateOf(listener: MergedListener): CountedState {
  if (isServing(listener)) return "serving";
  return listener.conflict === undefined ? "refused" : "conflicted";
}
