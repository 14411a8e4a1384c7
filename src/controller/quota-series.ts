/**
 * The use of quotas as series of metrics. They are bounded, however many tenants there are:
 * namespaces that are near a limit come first, so that an alert misses none while there is room,
 * and then names decide. The rest is summed up.
 */
import type { QuotaResource, QuotaUse } from "../engine/tenancy/quota-use.ts";
import { levelOf } from "../engine/tenancy/quota-use.ts";

export interface QuotaSeries {
  /** `namespace/name` */
  readonly gateway: string;
  readonly namespace: string;
  readonly resource: QuotaResource;
  readonly used: number;
  readonly limit: number;
}

/** No namespace can be called so: they have no capitals. */
const OVERFLOW = "Overflow";

/** Seven series of each metric at most, for each of them. */
const MOST_NAMESPACES = 1_000;

/** Without names, everything is summed up. */
export function quotaSeries(
  uses: Iterable<QuotaUse>,
  { namesTenants }: { readonly namesTenants: boolean },
): readonly QuotaSeries[] {
  const ranked = [...uses].map((use) => [rankOf(use), use] as const);
  if (namesTenants) ranked.sort(([a], [b]) => (a < b ? -1 : 1));
  const most = namesTenants ? MOST_NAMESPACES : 0;
  const sums = new Map<string, QuotaSeries>();
  const series: QuotaSeries[] = [];
  for (const [place, [, { gateway: key, namespace, resources }]] of ranked.entries()) {
    const gateway = key.slice(key.indexOf("/") + 1);
    for (const { resource, used, limit } of resources) {
      if (place < most) {
        series.push({ gateway, namespace, resource, used, limit });
        continue;
      }
      const id = `${gateway} ${resource}`;
      const sum = sums.get(id) ?? { used: 0, limit: 0 };
      sums.set(id, {
        ...{ gateway, namespace: OVERFLOW, resource },
        ...{ used: sum.used + used, limit: sum.limit + limit },
      });
    }
  }
  return [...series, ...sums.values()];
}

function rankOf(use: QuotaUse): string {
  const level = levelOf(use);
  return `${level === "full" ? 0 : level === "near" ? 1 : 2} ${use.gateway} ${use.namespace}`;
}
