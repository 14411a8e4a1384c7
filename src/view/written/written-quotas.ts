/**
 * The use of quotas for a person who may not read everything. It depends on a namespace's own
 * objects and on the TenantPolicy alone: who may read those is told of that namespace, and of no
 * other.
 */
import { type Key, keyFor, keyOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { ageRank } from "../../engine/foundation/precedence.ts";
import type { QuotaUse } from "../../engine/tenancy/quota-use.ts";
import { gatewaysOf } from "../../engine/tenancy/tenancy.ts";
import { quotasAt } from "../build-policies.ts";
import { isRoute } from "../is-route.ts";
import { type PolicyView, refOf } from "../merged-state.ts";
import { currentVerdicts } from "./current-verdicts.ts";
import { lacksDeciding, type ReadingScope } from "./reading-scope.ts";

/** What an engine has counted of what may be read, without what it could only count in part. */
export function knownQuotas(
  uses: Iterable<QuotaUse>,
  resources: ReadonlyMap<Key, Resource>,
  { namespaces, unread }: ReadingScope,
): readonly QuotaUse[] {
  if (lacksDeciding(unread)) return [];
  const isRead = (what: RegExp): boolean => !unread.some((resource) => what.test(resource));
  const isWhole = namespaces.length === 0;
  const hasCertificates = isWhole && isRead(/^secrets$/) && isRead(/^referencegrants\./);
  const elsewhere = isWhole ? new Set<string>() : namespacesWithForeignParents(resources, namespaces);
  return [...uses].flatMap((use) => {
    const { namespace } = use;
    // Its labels choose the rule.
    if (!resources.has(keyFor("Namespace", "", namespace))) return [];
    if (!isWhole && !namespaces.includes(namespace)) return [];
    const hasRoutes = isRead(/routes(\.|$)/) && !elsewhere.has(namespace);
    const known = use.resources.filter(({ resource }) => {
      if (resource === "routes" || resource === "rules") return hasRoutes;
      if (resource === "certificates") return hasCertificates;
      // Ports may be assigned, and others have theirs before.
      return resource !== "ports" || isWhole;
    });
    return known.length === 0 ? [] : [{ ...use, resources: known }];
  });
}

/** Those with routes of which it cannot be known here whether they are attached. */
function namespacesWithForeignParents(
  resources: ReadonlyMap<Key, Resource>,
  read: readonly string[],
): ReadonlySet<string> {
  const found = new Set<string>();
  for (const route of resources.values()) {
    if (!isRoute(route)) continue;
    const { namespace = "" } = route.metadata;
    const parents = route.spec.parentRefs ?? [];
    if (parents.some((parent) => !read.includes(parent.namespace ?? namespace))) found.add(namespace);
  }
  return found;
}

/** The one that counts at the Gateway, the oldest, where there are quotas to be shown. */
export function writtenTenantPolicies(
  gateway: Key,
  { resources, quotas: uses = [] }: { resources: ReadonlyMap<Key, Resource>; quotas?: readonly QuotaUse[] },
): readonly PolicyView[] {
  const quotas = quotasAt(uses, gateway);
  if (quotas.length === 0) return [];
  const policies = [...resources.values()]
    .filter((resource) => resource.kind === "TenantPolicy")
    .filter((policy) => gatewaysOf(policy).includes(gateway))
    .toSorted((a, b) => (ageRank(a.metadata) < ageRank(b.metadata) ? -1 : 1));
  return policies.slice(0, 1).map((policy): PolicyView => {
    const { namespace, name } = refOf(gateway);
    const entry = policy.status?.ancestors?.find(
      ({ ancestorRef }) =>
        ancestorRef.name === name && (ancestorRef.namespace ?? policy.metadata.namespace) === namespace,
    );
    const conditions = currentVerdicts(policy.metadata, entry?.conditions);
    return { ...refOf(keyOf(policy)), defaults: [], overrides: [], counts: true, conditions, quotas };
  });
}
