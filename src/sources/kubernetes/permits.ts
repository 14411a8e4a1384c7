/**
 * Which of the referred objects may be used: those of the referrer's own namespace, and those that
 * a ReferenceGrant lets it use. What nobody may use is not read, whoever refers to it: a tenant
 * must not have another's keys brought into the controller by naming them.
 */
import { type Key, keyFor, partsOf } from "../../api/key.ts";
import type { ReferenceGrant } from "../../api/policies.ts";
import type { Kind } from "../../api/resource.ts";
import { grantableAs, permissionsOf } from "../../api/rules/reference-grants.ts";

/**
 * Who refers to something in another namespace: `group|kind|namespace`; empty for whoever refers to
 * what is beside it.
 */
export type From = string;

/**
 * An object, and on whose behalf: `Secret/team-a/cert`, or
 * `Secret/team-a/cert|group|kind|namespace`.
 */
export type Use = string;

export interface PermitChange {
  readonly wanted: readonly Key[];
  readonly unwanted: readonly Key[];
}

export function fromOf(group: string, kind: string, namespace: string): From {
  return `${group}|${kind}|${namespace}`;
}

export function useOf(key: Key, from: From): Use {
  return from === "" ? key : `${key}|${from}`;
}

export class Permits {
  /** Uses of an object, as long as there are any. */
  readonly #uses = new Map<Key, Set<From>>();
  /** Objects of a kind and namespace that somebody elsewhere refers to. */
  readonly #fromElsewhere = new Map<Key, Set<Key>>();
  readonly #grants = new Map<Key, ReadonlySet<Use>>();
  /**
   * How many grants give a permission; one without a name is for all objects of the kind and
   * namespace.
   */
  readonly #permissions = new Map<Use, number>();
  readonly #wanted = new Set<Key>();

  isWanted(key: Key): boolean {
    return this.#wanted.has(key);
  }

  /** Uses that there were not before, and uses that there are no longer. */
  takeUses(begun: readonly Use[], ended: readonly Use[]): PermitChange {
    const touched = new Set<Key>();
    for (const use of begun) {
      const { key, from } = split(use);
      entryOf(this.#uses, key).add(from);
      if (from !== "") entryOf(this.#fromElsewhere, placeOf(key)).add(key);
      touched.add(key);
    }
    for (const use of ended) {
      const { key, from } = split(use);
      if (this.#uses.get(key)?.delete(from)) touched.add(key);
    }
    return this.#judge(touched);
  }

  takeGrant(key: Key, grant: ReferenceGrant | undefined): PermitChange {
    const before = this.#grants.get(key) ?? new Set<Use>();
    const after = new Set(grant === undefined ? [] : usesPermittedBy(grant));
    if (grant === undefined) this.#grants.delete(key);
    else this.#grants.set(key, after);
    const touched = new Set<Key>();
    for (const permission of before) if (!after.has(permission)) this.#count(permission, -1, touched);
    for (const permission of after) if (!before.has(permission)) this.#count(permission, 1, touched);
    return this.#judge(touched);
  }

  #count(permission: Use, by: 1 | -1, touched: Set<Key>): void {
    const count = (this.#permissions.get(permission) ?? 0) + by;
    if (count > 0) this.#permissions.set(permission, count);
    else this.#permissions.delete(permission);
    const { key } = split(permission);
    if (partsOf(key).name !== "") touched.add(key);
    else for (const each of this.#fromElsewhere.get(key) ?? []) touched.add(each);
  }

  #judge(touched: ReadonlySet<Key>): PermitChange {
    const wanted: Key[] = [];
    const unwanted: Key[] = [];
    for (const key of touched) {
      this.#forgetUnused(key);
      const is = [...(this.#uses.get(key) ?? [])].some((from) => this.#isPermitted(key, from));
      if (is === this.#wanted.has(key)) continue;
      if (is) this.#wanted.add(key);
      else this.#wanted.delete(key);
      (is ? wanted : unwanted).push(key);
    }
    return { wanted, unwanted };
  }

  #isPermitted(key: Key, from: From): boolean {
    if (from === "") return true;
    return grantableAs(partsOf(key)).some(({ kind, namespace, name }) =>
      this.#permissions.has(useOf(keyFor(kind, namespace, name), from)),
    );
  }

  #forgetUnused(key: Key): void {
    if (this.#uses.get(key)?.size !== 0) return;
    this.#uses.delete(key);
    const place = placeOf(key);
    const others = this.#fromElsewhere.get(place);
    others?.delete(key);
    if (others?.size === 0) this.#fromElsewhere.delete(place);
  }
}

function usesPermittedBy(grant: ReferenceGrant): readonly Use[] {
  return permissionsOf(grant)
    .filter(({ to }) => to.group === "")
    .map(({ from, to }) =>
      useOf(keyFor(to.kind as Kind, to.namespace, to.name), fromOf(from.group, from.kind, from.namespace)),
    );
}

/** The key of all objects of the kind and namespace. */
function placeOf(key: Key): Key {
  const { kind, namespace } = partsOf(key);
  return keyFor(kind, namespace, "");
}

function split(use: Use): { readonly key: Key; readonly from: From } {
  const at = use.indexOf("|");
  return at < 0 ? { key: use as Key, from: "" } : { key: use.slice(0, at) as Key, from: use.slice(at + 1) };
}

function entryOf<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  const known = map.get(key) ?? new Set<V>();
  map.set(key, known);
  return known;
}
