/**
 * Who uses which hostname of a Gateway whose TenantPolicy holds claims, and who wants it.
 *
 * - An owner holds the hostname of a listener that is neither refused nor in conflict. One that
 *   only lacks something that it refers to, a certificate for instance, holds it as well: it would
 *   serve as soon as that is there.
 * - The Gateway's own namespace holds nothing here. It is not restricted, and reserves names in the
 *   TenantPolicy.
 * - Whoever is in conflict wants the name.
 * - A name that the Gateway's owner has given to a namespace may be asked for there.
 */
import { type Key, partsOf } from "../../api/key.ts";
import type { HostnameTransfer } from "../../api/tenant-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import { placeOfName, type Tenancy } from "../tenancy/tenancy.ts";
import type { EvaluatedListener } from "./listeners.ts";
import { isServing, type MergedListener } from "./merge.ts";

/** Of one hostname at one Gateway; the empty hostname is that of listeners without one. */
export interface UsedHostname {
  readonly gateway: Key;
  readonly hostname: string;
  /** In order of precedence. There may be several on different ports. */
  readonly holders: readonly Key[];
  readonly wanted: readonly Key[];
  readonly transfer?: HostnameTransfer["to"];
}

type ClaimingListener = Pick<EvaluatedListener, "gateway" | "hostname" | "rank"> & {
  readonly owner: Key;
  readonly isHolder: boolean;
};

/** By {@link placeOfName}. */
export function deriveClaims(
  graph: Graph,
  merged: ReadonlyCollection<MergedListener>,
  { holds, transfers, transferOf }: Tenancy,
): ReadonlyCollection<UsedHostname> {
  const claiming = graph.derive<MergedListener, ClaimingListener>(
    "listeners that claim",
    merged,
    (_key, listener, lookup) =>
      lookup.get(holds, listener.gateway) === undefined ? undefined : claimingListener(listener),
  );
  const byName = graph.index("claims by hostname", claiming, (_key, { gateway, hostname, rank }) => [
    { at: placeOfName(gateway, hostname), sort: rank },
  ]);
  const used = graph.derive<Iterable<{ readonly value: ClaimingListener }>, UsedHostname>(
    "claims of hostnames",
    byName,
    (_place, entries, lookup) => {
      const listeners = Array.from(entries, ({ value }) => value);
      const [first] = listeners;
      if (first === undefined) return undefined;
      const { gateway, hostname } = first;
      const ownersOf = (isHolder: boolean): readonly Key[] => [
        ...new Set(listeners.flatMap((each) => (each.isHolder === isHolder ? each.owner : []))),
      ];
      const transfer = transferOf(gateway, hostname, lookup);
      return {
        gateway,
        hostname,
        holders: ownersOf(true),
        wanted: ownersOf(false),
        ...(transfer === undefined ? {} : { transfer }),
      };
    },
  );
  const given = graph.derive<HostnameTransfer, UsedHostname>(
    "transfers of unused hostnames",
    transfers,
    (place, { hostname, to }, lookup) => {
      const gateway = place.slice(0, place.indexOf("|"));
      if (lookup.get(holds, gateway) === undefined || lookup.count(byName, place) > 0) return undefined;
      return { gateway, hostname, holders: [], wanted: [], transfer: to };
    },
  );
  return graph.union("claims at gateways", [used, given]);
}

function claimingListener(listener: MergedListener): ClaimingListener | undefined {
  const { gateway, hostname, rank, owner, protocol, conflict } = listener;
  const isNamed = protocol === "HTTP" || protocol === "HTTPS" || protocol === "TLS";
  if (!isNamed || owner.namespace === partsOf(gateway).namespace) return undefined;
  const isWaiting =
    listener.refused !== undefined && listener.refused !== listener.violation && isUnresolved(listener);
  const isHolder = isServing(listener) || (isWaiting && conflict === undefined);
  if (!isHolder && conflict === undefined) return undefined;
  return { gateway, hostname, rank, owner: owner.key, isHolder };
}

/** It is refused because a reference does not resolve, and for nothing else. */
function isUnresolved({ refused, unresolved }: MergedListener): boolean {
  return unresolved !== undefined && refused?.message === unresolved.message;
}
