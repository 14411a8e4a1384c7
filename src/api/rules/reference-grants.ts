/**
 * The rules of ReferenceGrants, for the engine that judges references and for the source that reads
 * nothing that may not be used (ReferenceGrant.spec).
 *
 * - A reference within one namespace needs no grant.
 * - Any other needs a grant in the namespace of what it refers to. The grant names the referrer's
 *   group, kind and namespace in `from`, and the group and kind of what is referred to in `to`.
 * - Every `from` goes with every `to`. A `to` without a name is for all objects of its kind.
 * - Grants to a Gateway are not inherited by its sets, nor the reverse (GEP-1713, ReferenceGrant
 *   Semantics): only the referrer's own kind counts.
 */
import type { ReferenceGrant } from "../policies.ts";

export interface Referrer {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
}

/** The name is empty for all objects of the kind in the namespace. */
export interface Referent extends Referrer {
  readonly name: string;
}

export interface Permission {
  readonly from: Referrer;
  readonly to: Referent;
}

export function needsGrant(
  from: { readonly namespace: string },
  to: { readonly namespace: string },
): boolean {
  return from.namespace !== to.namespace;
}

/** What a grant permits, one for each pair of `from` and `to`. */
export function permissionsOf({ metadata, spec }: ReferenceGrant): readonly Permission[] {
  const { namespace = "" } = metadata;
  return spec.from.flatMap((from) =>
    spec.to.map(({ group, kind, name = "" }) => ({ from, to: { group, kind, namespace, name } })),
  );
}

/** What a grant may name to permit a reference to this object: all of its kind, or it alone. */
export function grantableAs<To extends { readonly name: string }>(to: To): readonly To[] {
  return [{ ...to, name: "" }, to];
}
