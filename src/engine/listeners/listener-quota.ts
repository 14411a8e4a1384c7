/**
 * How much the listeners of a namespace may use at a Gateway. They are counted in order of
 * precedence, whatever their state, so that the oldest keep theirs:
 *
 *   listeners      each counts
 *   hostnames      different ones; none at all counts as one
 *   wildcards      different hostnames that are wildcards, or none at all
 *   ports          different ones
 *   certificates   different Secrets
 */
import type { TenantQuota } from "../../api/tenant-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Entries } from "../../graph/sorted-entries.ts";
import { isWildcard } from "../../plan/hostname.ts";
import type { Rank } from "../foundation/precedence.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { CountedUse } from "../tenancy/quota-use.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import type { EvaluatedListener, ListenerKey } from "./listeners.ts";

type Distinct = "hostnames" | "wildcards" | "ports" | "certificates";

interface Exceeded {
  readonly isEnforced: boolean;
  readonly quota: TenantQuota;
  /** The first listener beyond the number of listeners. */
  readonly firstBeyond?: Rank;
  /** Listeners that would need one more of something. */
  readonly beyond: Readonly<Record<ListenerKey, Distinct>>;
}

interface Counted {
  readonly use: CountedUse;
  /** Absent: there is enough for all. */
  readonly exceeded?: Exceeded;
}

export interface QuotaExcess {
  readonly problem: Failure;
  /** False: the policy only counts. */
  readonly isEnforced: boolean;
}

export interface ListenerQuota {
  readonly excessOf: (listener: EvaluatedListener, lookup: Lookup) => QuotaExcess | undefined;
  /** What is used up, by `gateway|namespace`. */
  readonly usedUp: ReadonlyCollection<UsedUp>;
  /** What is used, by `gateway|namespace`. */
  readonly uses: ReadonlyCollection<CountedUse>;
}

/** Limits beyond which a namespace asks for more, in words: `10 listeners`. */
export interface UsedUp {
  readonly namespace: string;
  readonly limits: readonly string[];
}

type RankedListeners = Entries<{ readonly sort: Rank; readonly value: EvaluatedListener }>;

const DISTINCT: Readonly<Record<Distinct, (listener: EvaluatedListener) => readonly (string | number)[]>> = {
  hostnames: (listener) => (isNamed(listener) ? [listener.hostname] : []),
  wildcards: (listener) => (isNamed(listener) && isWide(listener.hostname) ? [listener.hostname] : []),
  ports: ({ port }) => [port],
  certificates: ({ certificates }) => certificates,
};

const REASONS = {
  listeners: "TooManyListeners",
  hostnames: "TooManyHostnames",
  wildcards: "TooManyWildcards",
  ports: "TooManyPorts",
  certificates: "TooManyCertificates",
} as const;

export function deriveListenerQuota(
  graph: Graph,
  listeners: ReadonlyCollection<EvaluatedListener>,
  { rightsAt }: Tenancy,
): ListenerQuota {
  const ofNamespace = graph.index("listeners of namespace", listeners, (_key, listener) =>
    listener.owner.role === "root" ? [] : [{ at: placeOf(listener), sort: listener.rank }],
  );
  const counted = graph.derive<RankedListeners, Counted>(
    "quotas of listeners",
    ofNamespace,
    (_key, entries, lookup) => {
      const first = entries.at(0)?.value;
      const found = first && rightsAt(first.gateway, first.owner.namespace, lookup);
      const rule = found?.rights.rule;
      if (found === undefined || rule?.quota === undefined) return undefined;
      const { quota, name } = rule;
      const use = { quota, used: usedBy(entries, quota), ...(name === undefined ? {} : { rule: name }) };
      const firstBeyond = quota.listeners === undefined ? undefined : entries.at(quota.listeners)?.sort;
      const beyond = beyondDistinct(entries, quota, firstBeyond);
      if (firstBeyond === undefined && Object.keys(beyond).length === 0) return { use };
      const { isEnforced } = found;
      const rank = firstBeyond === undefined ? {} : { firstBeyond };
      return { use, exceeded: { isEnforced, quota, beyond, ...rank } };
    },
  );
  // Apart: listeners look at what is exceeded, and need not at every use.
  const exceeded = graph.derive<Counted, Exceeded>(
    "exceeded quotas of listeners",
    counted,
    (_place, found) => found.exceeded,
  );
  const uses = graph.derive<Counted, CountedUse>("uses of listeners", counted, (_place, { use }) => use);
  const usedUp = graph.derive<Exceeded, UsedUp>("used up quotas of listeners", exceeded, (place, found) => {
    const { quota, firstBeyond, beyond } = found;
    const whats = new Set([
      ...(firstBeyond === undefined ? [] : (["listeners"] as const)),
      ...Object.values(beyond),
    ]);
    const namespace = place.slice(place.indexOf("|") + 1);
    return { namespace, limits: [...whats].map((what) => `${quota[what]} ${what}`) };
  });
  const excessOf: ListenerQuota["excessOf"] = (listener, lookup) => {
    if (listener.owner.role === "root") return undefined;
    const found = lookup.get(exceeded, placeOf(listener));
    if (found === undefined) return undefined;
    const { firstBeyond, beyond, quota, isEnforced } = found;
    const isBeyond = firstBeyond !== undefined && listener.rank >= firstBeyond;
    const what = isBeyond ? "listeners" : beyond[listener.key];
    if (what === undefined) return undefined;
    const message = `namespace ${listener.owner.namespace} may have ${quota[what]} ${what} at the Gateway, and older listeners use them up`;
    return { problem: { reason: REASONS[what], message }, isEnforced };
  };
  return { excessOf, usedUp, uses };
}

/** Of what is limited; what is beyond a limit counts as well. */
function usedBy(entries: RankedListeners, quota: TenantQuota): CountedUse["used"] {
  const distinct = (Object.keys(DISTINCT) as Distinct[]).filter((what) => quota[what] !== undefined);
  const found = new Map(distinct.map((what) => [what, new Set<string | number>()]));
  if (found.size > 0)
    for (const { value } of entries)
      for (const [what, known] of found) for (const each of DISTINCT[what](value)) known.add(each);
  return {
    ...(quota.listeners === undefined ? {} : { listeners: entries.length }),
    ...Object.fromEntries(Array.from(found, ([what, known]) => [what, known.size])),
  };
}

/** What is beyond one limit uses up no other. */
function beyondDistinct(
  entries: RankedListeners,
  quota: TenantQuota,
  firstBeyond: Rank | undefined,
): Readonly<Record<ListenerKey, Distinct>> {
  const beyond: Record<ListenerKey, Distinct> = {};
  const limited = (Object.keys(DISTINCT) as Distinct[]).filter((what) => quota[what] !== undefined);
  if (limited.length === 0) return beyond;
  const used = new Map(limited.map((what) => [what, new Set<string | number>()]));
  for (const { sort, value } of entries) {
    if (firstBeyond !== undefined && sort >= firstBeyond) break;
    const excess = limited.find((what) => {
      const known = used.get(what);
      const added = new Set(DISTINCT[what](value).filter((each) => known?.has(each) === false));
      return added.size > 0 && (known?.size ?? 0) + added.size > (quota[what] ?? 0);
    });
    if (excess !== undefined) beyond[value.key] = excess;
    else for (const what of limited) for (const each of DISTINCT[what](value)) used.get(what)?.add(each);
  }
  return beyond;
}

function isNamed({ protocol }: EvaluatedListener): boolean {
  return protocol === "HTTP" || protocol === "HTTPS" || protocol === "TLS";
}

function isWide(hostname: string): boolean {
  return hostname === "" || isWildcard(hostname);
}

function placeOf({ gateway, owner }: EvaluatedListener): string {
  return `${gateway}|${owner.namespace}`;
}
