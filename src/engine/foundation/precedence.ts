/**
 * Who comes first, among owners (GEP-1713, Listener Precedence) and among routes
 * (Gateway.spec.listeners.allowedRoutes). Only this file knows the order:
 *
 * 1. the Gateway itself,
 * 2. older before younger,
 * 3. alphabetically by `namespace/name`,
 * 4. ListenerSet before XListenerSet before child Gateway.
 *
 * An absent creation time counts as equal to every other absent one, so names decide in a folder of
 * YAML. Ranks are strings that sort in that order, so an index can keep them sorted.
 */
import type { ObjectMeta } from "../../api/metadata.ts";

const END = "\u0000";

export type Rank = string;

export function ownerRank(
  metadata: ObjectMeta,
  role: "root" | "ListenerSet" | "XListenerSet" | "child",
): Rank {
  if (role === "root") return "0";
  const order = { ListenerSet: "0", XListenerSet: "1", child: "2" }[role];
  return `1${ageRank(metadata)}${END}${order}`;
}

/** A listener ranks by its owner, then by its place in the owner's list. */
export function listenerRank(owner: Rank, place: number): Rank {
  return `${owner}${END}${String(place).padStart(4, "0")}`;
}

export function ageRank(metadata: ObjectMeta): Rank {
  return `${metadata.creationTimestamp ?? ""}${END}${metadata.namespace ?? ""}/${metadata.name}`;
}

/** The clause above that puts one owner before another. */
export type PrecedenceRule = "gateway" | "age" | "name" | "kind";

const CLAUSES: readonly PrecedenceRule[] = ["age", "name", "kind"];

/** Undefined for two ranks of one owner. */
export function decidingRule(a: Rank, b: Rank): PrecedenceRule | undefined {
  if (a === b) return undefined;
  const [left, right] = [a.split(END), b.split(END)];
  if (a[0] !== b[0]) return "gateway";
  return CLAUSES.find((_clause, at) => left[at] !== right[at]);
}
