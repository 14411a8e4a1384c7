/**
 * ReferenceGrants. A reference into another namespace needs a grant there that names the referrer's
 * group, kind and namespace. Grants to a Gateway are not inherited by its sets, nor the reverse
 * (GEP-1713, ReferenceGrant Semantics): only the referrer's own kind counts.
 */
import type { ReferenceGrant } from "../../api/policies.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";

export interface Referrer {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
}

export interface Referent extends Referrer {
  readonly name: string;
}

export type Grants = Index<ReferenceGrant>;

/**
 * One entry for each pair of from and to, so that a lookup of one permission depends on no other
 * grant.
 */
export function indexGrants(graph: Graph, grants: ReadonlyCollection<ReferenceGrant>): Grants {
  return graph.index("grants by permission", grants, (_key, { metadata, spec }) =>
    spec.from.flatMap((from) =>
      spec.to.map((to) => ({
        at: permission(from, { ...to, namespace: metadata.namespace ?? "", name: to.name ?? "" }),
      })),
    ),
  );
}

export function isPermitted(lookup: Lookup, grants: Grants, from: Referrer, to: Referent): boolean {
  if (from.namespace === to.namespace) return true;
  return (
    lookup.count(grants, permission(from, { ...to, name: "" })) > 0 ||
    lookup.count(grants, permission(from, to)) > 0
  );
}

function permission(from: Referrer, to: Referent): string {
  return `${to.namespace}|${to.group}|${to.kind}|${to.name}|${from.namespace}|${from.group}|${from.kind}`;
}
