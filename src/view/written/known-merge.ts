import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { Engine } from "../../engine/engine.ts";
import { decidingRule } from "../../engine/foundation/precedence.ts";
import type { Owner } from "../../engine/listeners/owners.ts";
import { listenerRefOf } from "../merged-state.ts";
import type { KnownMerge } from "./written-listener.ts";

/** Precedence and holders, from an engine that knows everything that the merge depends on. */
export function knownMerge(engine: Engine, resources: ReadonlyMap<Key, Resource>): KnownMerge {
  const owners = new Map<Key, Owner>();
  for (const key of resources.keys()) {
    const owner = engine.attachment(key)?.owner;
    if (owner !== undefined) owners.set(key, owner);
  }
  const places = new Map<Key, number>();
  for (const ofGateway of Map.groupBy(owners.values(), ({ gateway }) => gateway).values()) {
    const ranked = ofGateway.toSorted((a, b) => (a.rank < b.rank ? -1 : 1));
    for (const [index, { key }] of ranked.entries()) places.set(key, index + 1);
  }
  return {
    precedenceOf: (owner) => places.get(owner),
    holderOf: (listener) => {
      const at = listener.lastIndexOf("#");
      const own = owners.get(listener.slice(0, at));
      const verdict = own && engine.verdict(own.key);
      const listeners = verdict?.type === "gateway" || verdict?.type === "set" ? verdict.listeners : [];
      const heldBy = listeners.find(({ name }) => name === listener.slice(at + 1))?.heldBy;
      if (own === undefined || heldBy === undefined) return {};
      const holder = owners.get(heldBy.slice(0, heldBy.lastIndexOf("#")));
      const decidedBy = holder && decidingRule(holder.rank, own.rank);
      return { heldBy: listenerRefOf(heldBy), ...(decidedBy === undefined ? {} : { decidedBy }) };
    },
  };
}
