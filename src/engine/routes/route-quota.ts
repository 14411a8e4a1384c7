/**
 * How many routes, and rules in them, a namespace may have at a Gateway. They are counted from the
 * oldest on, whatever their state; a route that is beyond a limit is not attached there, and takes
 * nothing from others.
 */
import { type Key, partsOf } from "../../api/key.ts";
import type { TenantQuota } from "../../api/tenant-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Entries } from "../../graph/sorted-entries.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { ageRank } from "../foundation/precedence.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { UsedUp } from "../listeners/listener-quota.ts";
import type { CountedUse } from "../tenancy/quota-use.ts";
import type { EnforcedRights, Tenancy } from "../tenancy/tenancy.ts";
import type { ParentOutcome, RouteAttachment } from "./route-attachment.ts";

interface CountedRoute {
  readonly gateways: readonly Key[];
  readonly namespace: string;
  readonly rank: string;
  readonly rules: number;
}

interface Exceeded {
  readonly isEnforced: boolean;
  readonly quota: TenantQuota;
  readonly beyond: Readonly<Record<Key, "routes" | "rules">>;
}

interface Counted {
  readonly use: CountedUse;
  /** Absent: there is enough for all. */
  readonly exceeded?: Exceeded;
}

export interface RouteQuota {
  /** The route without what is beyond a limit. */
  readonly within: (attachment: RouteAttachment, lookup: Lookup) => RouteAttachment;
  readonly isExcess: (route: Key, gateway: Key, lookup: Lookup) => boolean;
  /** What is used up, by `gateway|namespace`. */
  readonly usedUp: ReadonlyCollection<UsedUp>;
  /** What is used, by `gateway|namespace`. */
  readonly uses: ReadonlyCollection<CountedUse>;
}

const REASONS = { routes: "TooManyRoutes", rules: "TooManyRules" } as const;

export function deriveRouteQuota(
  graph: Graph,
  inputs: Inputs,
  {
    evaluated,
    tenancy,
  }: { readonly evaluated: ReadonlyCollection<RouteAttachment>; readonly tenancy: Tenancy },
): RouteQuota {
  // Without a quota nothing is kept of a route here.
  const counted = graph.derive<RouteAttachment, CountedRoute>(
    "routes under a quota",
    evaluated,
    (key, attachment, lookup) => {
      const { namespace } = partsOf(key);
      const gateways = gatewaysOf(attachment).filter((gateway) =>
        hasQuota(tenancy.rightsAt(gateway, namespace, lookup)),
      );
      if (gateways.length === 0) return undefined;
      const route = lookup.get(inputs.routes, key);
      const rules = route?.spec.rules?.length ?? 0;
      return { gateways, namespace, rules, rank: route === undefined ? "" : ageRank(route.metadata) };
    },
  );
  const ofNamespace = graph.index("routes of namespace", counted, (_key, { gateways, namespace, rank }) =>
    gateways.map((gateway) => ({ at: `${gateway}|${namespace}`, sort: rank })),
  );
  const ofQuota = graph.derive<Entries<{ readonly key: string; readonly value: CountedRoute }>, Counted>(
    "quotas of routes",
    ofNamespace,
    (place, entries, lookup) => {
      const at = place.indexOf("|");
      const found = tenancy.rightsAt(place.slice(0, at), place.slice(at + 1), lookup);
      const rule = found?.rights.rule;
      if (found === undefined || rule?.quota === undefined) return undefined;
      const { quota, name } = rule;
      const use = { quota, used: usedBy(entries, quota), ...(name === undefined ? {} : { rule: name }) };
      const beyond = beyondLimits(entries, quota);
      if (Object.keys(beyond).length === 0) return { use };
      return { use, exceeded: { isEnforced: found.isEnforced, quota, beyond } };
    },
  );
  // Apart: routes look at what is exceeded, and need not at every use.
  const exceeded = graph.derive<Counted, Exceeded>(
    "exceeded quotas of routes",
    ofQuota,
    (_place, found) => found.exceeded,
  );
  const uses = graph.derive<Counted, CountedUse>("uses of routes", ofQuota, (_place, { use }) => use);
  const excessOf = (route: Key, gateway: Key, lookup: Lookup): Excess | undefined => {
    if (lookup.get(counted, route) === undefined) return undefined;
    const { namespace } = partsOf(route);
    const found = lookup.get(exceeded, `${gateway}|${namespace}`);
    const what = found?.beyond[route];
    if (found === undefined || what === undefined) return undefined;
    const message = `namespace ${namespace} may have ${found.quota[what]} ${what} at the Gateway, and older routes use them up`;
    return { problem: { reason: REASONS[what], message }, isEnforced: found.isEnforced };
  };
  const usedUp = graph.derive<Exceeded, UsedUp>(
    "used up quotas of routes",
    exceeded,
    (place, { quota, beyond }) => ({
      namespace: place.slice(place.indexOf("|") + 1),
      limits: [...new Set(Object.values(beyond))].map((what) => `${quota[what]} ${what}`),
    }),
  );
  return {
    usedUp,
    uses,
    isExcess: (route, gateway, lookup) => excessOf(route, gateway, lookup)?.isEnforced === true,
    within(attachment, lookup) {
      if (lookup.get(counted, attachment.route) === undefined) return attachment;
      const parents = attachment.parents.map((parent) => {
        const gateway = parent.bindings[0]?.gateway;
        const excess = gateway && excessOf(attachment.route, gateway, lookup);
        return gateway && excess ? limited(parent, gateway, excess) : parent;
      });
      return { ...attachment, parents };
    },
  };
}

interface Excess {
  readonly problem: Failure;
  readonly isEnforced: boolean;
}

/** All bindings of a parent are at one Gateway. */
function limited(parent: ParentOutcome, violation: Key, { problem, isEnforced }: Excess): ParentOutcome {
  return isEnforced ? { ...parent, bindings: [], refused: problem, violation } : { ...parent, violation };
}

function hasQuota(found: EnforcedRights | undefined): boolean {
  const quota = found?.rights.rule?.quota;
  return quota?.routes !== undefined || quota?.rules !== undefined;
}

function gatewaysOf({ parents }: RouteAttachment): readonly Key[] {
  return [...new Set(parents.flatMap(({ bindings }) => bindings[0]?.gateway ?? []))];
}

/** Of what is limited; what is beyond a limit counts as well. */
function usedBy(entries: Entries<{ readonly value: CountedRoute }>, quota: TenantQuota): CountedUse["used"] {
  let rules = 0;
  if (quota.rules !== undefined) for (const { value } of entries) rules += value.rules;
  return {
    ...(quota.routes === undefined ? {} : { routes: entries.length }),
    ...(quota.rules === undefined ? {} : { rules }),
  };
}

/** What is beyond one limit does not use up the other. */
function beyondLimits(
  entries: Iterable<{ readonly key: string; readonly value: CountedRoute }>,
  quota: TenantQuota,
): Readonly<Record<Key, "routes" | "rules">> {
  const { routes: mostRoutes = Number.POSITIVE_INFINITY, rules: mostRules = Number.POSITIVE_INFINITY } =
    quota;
  const beyond: Record<Key, "routes" | "rules"> = {};
  let routes = 0;
  let rules = 0;
  for (const { key, value } of entries) {
    if (routes + 1 > mostRoutes) beyond[key] = "routes";
    else if (rules + value.rules > mostRules) beyond[key] = "rules";
    else {
      routes++;
      rules += value.rules;
    }
  }
  return beyond;
}
