/**
 * How many listeners a namespace may have at a Gateway. They are counted in order of precedence,
 * whatever their state, so that the oldest keep theirs.
 */
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Entries } from "../../graph/sorted-entries.ts";
import type { Rank } from "../foundation/precedence.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import type { EvaluatedListener } from "./listeners.ts";

interface Quota {
  readonly limit: number;
  readonly firstBeyond: Rank;
}

export type QuotaProblem = (listener: EvaluatedListener, lookup: Lookup) => Failure | undefined;

export function deriveListenerQuota(
  graph: Graph,
  listeners: ReadonlyCollection<EvaluatedListener>,
  { rightsAt }: Tenancy,
): QuotaProblem {
  const ofNamespace = graph.index("listeners of namespace", listeners, (_key, listener) =>
    listener.owner.role === "root" ? [] : [{ at: placeOf(listener), sort: listener.rank }],
  );
  const exceeded = graph.derive<Entries<{ readonly sort: Rank; readonly value: EvaluatedListener }>, Quota>(
    "exceeded quotas of listeners",
    ofNamespace,
    (_key, entries, lookup) => {
      const first = entries.at(0)?.value;
      const found = first && rightsAt(first.gateway, first.owner.namespace, lookup);
      const limit = found?.isEnforced === true ? found.rights.rule?.quota?.listeners : undefined;
      const firstBeyond = limit === undefined ? undefined : entries.at(limit)?.sort;
      return limit === undefined || firstBeyond === undefined ? undefined : { limit, firstBeyond };
    },
  );
  return (listener, lookup) => {
    if (listener.owner.role === "root") return undefined;
    const quota = lookup.get(exceeded, placeOf(listener));
    if (quota === undefined || listener.rank < quota.firstBeyond) return undefined;
    const message = `namespace ${listener.owner.namespace} may have ${quota.limit} listeners at the Gateway, and older ones use them up`;
    return { reason: "TooManyListeners", message };
  };
}

function placeOf({ gateway, owner }: EvaluatedListener): string {
  return `${gateway}|${owner.namespace}`;
}
