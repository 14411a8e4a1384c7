/**
 * What a data plane refuses of routes, by route. It reports hosts, on which the rules of several
 * routes meet, and backends, which several routes use; a route is told of its own part alone, at
 * the parents that have it.
 *
 * The API has no condition for it: HTTPRoute is Accepted by what it says, not by what became of it.
 * So there is a condition of ours, only where something is refused.
 */

import { type Key, keyFor, partsOf } from "../../api/key.ts";
import type { Kind } from "../../api/resource.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { ItemReport } from "../../plan/item-report.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { hostId } from "../foundation/item-ids.ts";
import { fails, type Verdict } from "../foundation/verdict.ts";
import type { BackendUse } from "../references/backends.ts";
import type { ParentOutcome } from "./route-attachment.ts";

export const ROUTE_PROGRAMMED = "mergeway.dev/Programmed";

/** One refusal that hits one route: of a host, or of a backend at a Gateway. */
export interface RouteRefusal {
  readonly route: Key;
  readonly message: string;
  readonly host?: string;
  readonly gateway?: Key;
}

export function deriveRouteRefusals(
  graph: Graph,
  inputs: Inputs,
  backendUses: Index<BackendUse>,
): Index<RouteRefusal> {
  const refusals = graph.expand<ItemReport, RouteRefusal>(
    "route refusals",
    inputs.reports,
    (id, report, lookup) => {
      if (report.state !== "rejected") return [];
      const found =
        report.rules === undefined ? ofBackend(id, lookup, backendUses) : ofHost(id, report.rules);
      return found.map((refusal, place) => [`${id}|${place}`, refusal] as const);
    },
  );
  return graph.index("refusals by route", refusals, (_key, { route }) => [{ at: route }]);
}

function ofHost(host: string, rules: NonNullable<ItemReport["rules"]>): readonly RouteRefusal[] {
  return rules.map(({ kind, namespace, name, message }) => ({
    route: keyFor(kind as Kind, namespace, name),
    message,
    host,
  }));
}

/** A route may use a backend in several rules, and is told once. */
function ofBackend(id: string, lookup: Lookup, uses: Index<BackendUse>): readonly RouteRefusal[] {
  const found = new Map<Key, RouteRefusal>();
  for (const { key, value } of lookup.get(uses, id) ?? []) {
    const at = key.indexOf("@");
    // A guard uses it.
    if (at < 0) continue;
    const route = key.slice(0, at);
    const { namespace, name, port } = value.target;
    const own = partsOf(route).namespace === namespace ? name : `${namespace}/${name}`;
    const message = `the data plane refuses the configuration of Service ${own}, port ${port}: requests for it are answered with 500`;
    found.set(route, { route, gateway: value.gateway, message });
  }
  return [...found.values()];
}

const MOST_TOLD = 3;

/** The condition of a parent at which something of the route is refused. */
export function refusalAt(
  { bindings }: ParentOutcome,
  refusals: readonly RouteRefusal[],
): Verdict | undefined {
  const isHere = ({ host, gateway: at }: RouteRefusal): boolean =>
    bindings.some(({ gateway, listener, hostnames }) =>
      host === undefined
        ? gateway === at
        : hostnames.some(({ pattern }) => hostId(gateway, listener, pattern) === host),
    );
  const messages = [...new Set(refusals.filter(isHere).map(({ message }) => message))].sort();
  if (messages.length === 0) return undefined;
  const more = messages.length > MOST_TOLD ? [`and ${messages.length - MOST_TOLD} more`] : [];
  const message = [...messages.slice(0, MOST_TOLD), ...more].join("; ");
  return fails(ROUTE_PROGRAMMED, { reason: "Refused", message });
}
