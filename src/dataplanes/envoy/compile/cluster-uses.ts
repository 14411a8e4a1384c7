import type { ItemId } from "../../../plan/plan.ts";
import type { ClusterUse } from "./backend-cluster.ts";

/** Whatever refers to backends: a scope, or a port with stream routes. */
export type User = { readonly port: ItemId; readonly pattern: string } | { readonly port: ItemId };

interface Use {
  readonly user: User;
  readonly clusters: ReadonlyMap<string, ClusterUse & { readonly backend: ItemId }>;
  readonly dependsOn: ReadonlySet<ItemId>;
}

/**
 * Which scopes and ports refer to which clusters. Only clusters with a reference exist, and a
 * changed backend or guard finds the scopes and ports that must change with it.
 */
export class ClusterUses {
  readonly #uses: Map<string, Use> = new Map();
  readonly #users: Map<string, Set<string>> = new Map();
  readonly #dependents: Map<ItemId, Set<string>> = new Map();
  /** Of these, whoever retries requests. */
  readonly #retriers: Map<string, Set<string>> = new Map();
  /** Backends that have got their first reference or lost their last, or so with retries. */
  readonly #changed: Set<ItemId> = new Set();

  /** `dependsOn`: backends and guards that decide what the user looks like. */
  set(user: User, clusters: Use["clusters"], dependsOn: Use["dependsOn"]): void {
    const key = keyOf(user);
    const before = this.#uses.get(key);
    for (const [name, { backend, isRetried }] of clusters) {
      const known = before?.clusters.get(name);
      if (known === undefined && add(this.#users, name, key)) this.#changed.add(backend);
      if (isRetried && known?.isRetried !== true && add(this.#retriers, name, key))
        this.#changed.add(backend);
    }
    for (const [name, { backend, isRetried }] of before?.clusters ?? []) {
      const next = clusters.get(name);
      if (next === undefined && remove(this.#users, name, key)) this.#changed.add(backend);
      if (isRetried && next?.isRetried !== true && remove(this.#retriers, name, key))
        this.#changed.add(backend);
    }
    for (const id of dependsOn) add(this.#dependents, id, key);
    for (const id of before?.dependsOn ?? []) if (!dependsOn.has(id)) remove(this.#dependents, id, key);
    if (clusters.size === 0 && dependsOn.size === 0) this.#uses.delete(key);
    else this.#uses.set(key, { user, clusters, dependsOn });
  }

  isUsed(cluster: string): boolean {
    return this.#users.has(cluster);
  }

  isRetried(cluster: string): boolean {
    return this.#retriers.has(cluster);
  }

  /** Whoever a backend or guard decides of. */
  dependents(id: ItemId): readonly User[] {
    return [...(this.#dependents.get(id) ?? [])].flatMap((key) => this.#uses.get(key)?.user ?? []);
  }

  takeChanged(): readonly ItemId[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }
}

function keyOf(user: User): string {
  return "pattern" in user ? `${user.port}\n${user.pattern}` : user.port;
}

/** Returns whether it is the first. */
function add(map: Map<string, Set<string>>, key: string, value: string): boolean {
  const values = map.get(key);
  if (values !== undefined) {
    values.add(value);
    return false;
  }
  map.set(key, new Set([value]));
  return true;
}

/** Returns whether it was the last. */
function remove(map: Map<string, Set<string>>, key: string, value: string): boolean {
  const values = map.get(key);
  values?.delete(value);
  return values?.size === 0 && map.delete(key);
}
