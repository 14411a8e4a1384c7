/**
 * How much of its quota each namespace uses at a Gateway. What it has counts, whatever its state:
 * use above the limit is what is refused or, where the policy only audits, would be.
 *
 * Two parts are counted apart, listeners and routes, since they are known at different times. A
 * change of a namespace recomputes that namespace; without quotas there is nothing here.
 */
import type { Key } from "../../api/key.ts";
import type { TenantQuota } from "../../api/tenant-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Entries } from "../../graph/sorted-entries.ts";

export type QuotaResource = keyof TenantQuota;

/** In the order in which people are shown them. */
const QUOTA_RESOURCES: readonly QuotaResource[] = [
  ...(["listeners", "hostnames", "wildcards", "ports"] as const),
  ...(["certificates", "routes", "rules"] as const),
];

/** What was counted of a namespace: by its listeners, or by its routes. */
export interface CountedUse {
  readonly quota: TenantQuota;
  /** Name of the rule that has the quota. */
  readonly rule?: string;
  readonly used: Readonly<Partial<Record<QuotaResource, number>>>;
}

/** A namespace at a Gateway whose TenantPolicy has a quota for it. */
export interface QuotaUse {
  readonly gateway: Key;
  readonly namespace: string;
  /** Name of the rule that has the quota. */
  readonly rule?: string;
  readonly resources: readonly ResourceUse[];
}

export interface ResourceUse {
  readonly resource: QuotaResource;
  readonly used: number;
  readonly limit: number;
}

/** `full`: something is used up. `near`: nine tenths of something are. */
export type QuotaLevel = "full" | "near";

export interface QuotaUses {
  /** By `gateway|namespace`. */
  readonly uses: ReadonlyCollection<QuotaUse>;
  /** How many namespaces have got so far. */
  readonly count: (gateway: Key, level: QuotaLevel, lookup: Lookup) => number;
}

/** Both parts are by `gateway|namespace`. */
export function deriveQuotaUses(
  graph: Graph,
  parts: {
    readonly ofListeners: ReadonlyCollection<CountedUse>;
    readonly ofRoutes: ReadonlyCollection<CountedUse>;
  },
): QuotaUses {
  const byPart = Object.entries(parts).map(([part, counted]) =>
    graph.expand<CountedUse, CountedUse & { readonly place: string }>(
      `use ${part}`,
      counted,
      (place, use) => [[`${part}|${place}`, { ...use, place }]],
    ),
  );
  const byPlace = graph.index("use by namespace", graph.union("counted use", byPart), (_key, { place }) => [
    { at: place },
  ]);
  const uses = graph.derive<Entries<{ readonly value: CountedUse }>, QuotaUse>(
    "use of quotas",
    byPlace,
    (place, entries) =>
      quotaUse(
        place,
        Array.from(entries, ({ value }) => value),
      ),
  );
  // Apart, so that a use that changes within its level wakes nobody.
  const levels = graph.derive<QuotaUse, QuotaLevel>("levels of quotas", uses, (_place, use) => levelOf(use));
  const byLevel = graph.index("namespaces by level of quota", levels, (place, level) => [
    { at: `${place.slice(0, place.indexOf("|"))}|${level}` },
  ]);
  return { uses, count: (gateway, level, lookup) => lookup.count(byLevel, `${gateway}|${level}`) };
}

function quotaUse(place: string, parts: readonly CountedUse[]): QuotaUse | undefined {
  const [first] = parts;
  if (first === undefined) return undefined;
  const { quota, rule } = first;
  const used = Object.assign({}, ...parts.map((part) => part.used)) as CountedUse["used"];
  const at = place.indexOf("|");
  return {
    gateway: place.slice(0, at),
    namespace: place.slice(at + 1),
    ...(rule === undefined ? {} : { rule }),
    resources: QUOTA_RESOURCES.flatMap((resource) => {
      const limit = quota[resource];
      return limit === undefined ? [] : [{ resource, limit, used: used[resource] ?? 0 }];
    }),
  };
}

/** Who may have none of something, and has none, is not at a limit. */
export function levelOf({ resources }: Pick<QuotaUse, "resources">): QuotaLevel | undefined {
  const used = resources.filter((each) => each.used > 0);
  if (used.some((each) => each.used >= each.limit)) return "full";
  return used.some((each) => each.used * 10 >= each.limit * 9) ? "near" : undefined;
}
