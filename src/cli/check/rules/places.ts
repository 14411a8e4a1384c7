import type { FieldPath } from "../../../api/admission/schema/field-error.ts";
import { type Key, keyFor } from "../../../api/key.ts";
import type { Kind, Resource } from "../../../api/resource.ts";
import type { ListenerView, MergedState, ObjectRef, OwnerView } from "../../../view/merged-state.ts";

export function keyOfRef({ kind, namespace, name }: ObjectRef): Key {
  return keyFor(kind as Kind, namespace, name);
}

export function* ownersOf({ gateways, orphans }: MergedState): Generator<OwnerView> {
  for (const { owners } of gateways) yield* owners;
  yield* orphans;
}

export interface OwnedListener {
  readonly owner: OwnerView;
  readonly listener: ListenerView;
  readonly at: Key;
  readonly path: FieldPath;
}

/**
 * Listeners of attached owners. Of an owner that is not attached, the owner itself is reported
 * instead.
 */
export function* attachedListeners(state: MergedState): Generator<OwnedListener> {
  for (const owner of ownersOf(state)) {
    if (!owner.attached) continue;
    for (const [place, listener] of owner.listeners.entries()) {
      yield { owner, listener, at: keyOfRef(owner), path: ["spec", "listeners", place] };
    }
  }
}

/** The rule `missing-grant` reports these listeners; other rules skip them. */
export function lacksGrant({ state, message, unresolved }: ListenerView): boolean {
  if (unresolved?.reason === "RefNotPermitted") return true;
  return state === "refused" && (message?.startsWith("no ReferenceGrant") ?? false);
}

/** The rule `certificate-invalid` reports these listeners; other rules skip them. */
export function lacksCertificate({ certificates }: ListenerView): boolean {
  return certificates.some(({ problem }) => problem !== undefined);
}

/** The field of a route's rule, or of one of its matches where matches are written. */
export function rulePath(rule: number, match: number, resource: Resource | undefined): FieldPath {
  const rules =
    resource !== undefined && "spec" in resource ? (resource.spec as { rules?: unknown[] }).rules : undefined;
  const matches = (rules?.[rule] as { matches?: readonly unknown[] } | undefined)?.matches;
  return matches?.[match] === undefined ? ["spec", "rules", rule] : ["spec", "rules", rule, "matches", match];
}
