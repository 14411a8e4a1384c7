/**
 * ReferenceGrants as the engine looks them up. Their rules are in
 * `src/api/rules/reference-grants.ts`.
 */
import type { ReferenceGrant } from "../../api/policies.ts";
import {
  grantableAs,
  needsGrant,
  permissionsOf,
  type Referent,
  type Referrer,
} from "../../api/rules/reference-grants.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";

export type Grants = Index<ReferenceGrant>;

/**
 * One entry for each pair of from and to, so that a lookup of one permission depends on no other
 * grant.
 */
export function indexGrants(graph: Graph, grants: ReadonlyCollection<ReferenceGrant>): Grants {
  return graph.index("grants by permission", grants, (_key, grant) =>
    permissionsOf(grant).map(({ from, to }) => ({ at: permission(from, to) })),
  );
}

export function isPermitted(lookup: Lookup, grants: Grants, from: Referrer, to: Referent): boolean {
  if (!needsGrant(from, to)) return true;
  return grantableAs(to).some((named) => lookup.count(grants, permission(from, named)) > 0);
}

function permission(from: Referrer, to: Referent): string {
  return `${to.namespace}|${to.group}|${to.kind}|${to.name}|${from.namespace}|${from.group}|${from.kind}`;
}
