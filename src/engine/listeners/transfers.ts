/**
 * Transfers of hostnames (TenantPolicy.spec.transfers): the Gateway's owner gives a hostname to a
 * namespace. Listeners of others give it up on each port where a listener of that namespace can
 * serve it, and not before: there is no moment in which nobody does. The order of precedence stays
 * as it is; whoever gives a name up is out of it.
 */
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import type { EvaluatedListener } from "./listeners.ts";

export interface Transfers {
  /** Those that contend for their hostname. */
  readonly contenders: ReadonlyCollection<EvaluatedListener>;
  readonly hasGivenUp: (listener: EvaluatedListener, lookup: Lookup) => boolean;
}

/** `nameOf` is the port and hostname of a listener, as a key. */
export function deriveTransfers(
  graph: Graph,
  able: ReadonlyCollection<EvaluatedListener>,
  { transferOf }: Tenancy,
  nameOf: (listener: EvaluatedListener) => string,
): Transfers {
  const isReceiver = ({ gateway, hostname, owner }: EvaluatedListener, lookup: Lookup): boolean => {
    const to = transferOf(gateway, hostname, lookup);
    if (to === undefined || to.namespace !== owner.namespace) return false;
    return to.name === undefined || to.name === owner.name;
  };
  const receivers = graph.derive<EvaluatedListener, EvaluatedListener>(
    "receivers of transfers",
    able,
    (_key, listener, lookup) => (isReceiver(listener, lookup) ? listener : undefined),
  );
  const byName = graph.index("receivers by hostname", receivers, (_key, listener) => [
    { at: nameOf(listener), sort: listener.rank },
  ]);
  const hasGivenUp: Transfers["hasGivenUp"] = (listener, lookup) =>
    listener.owner.role !== "root" &&
    lookup.count(byName, nameOf(listener)) > 0 &&
    !isReceiver(listener, lookup);
  const contenders = graph.derive<EvaluatedListener, EvaluatedListener>(
    "contenders",
    able,
    (_key, listener, lookup) => (hasGivenUp(listener, lookup) ? undefined : listener),
  );
  return { contenders, hasGivenUp };
}
