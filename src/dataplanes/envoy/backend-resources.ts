/**
 * Clusters and endpoints of one Gateway's backends. They exist while a route refers to them, and
 * for a while longer.
 *
 * After a NACK of its cluster or endpoints, a backend is unusable until it changes: routes answer
 * 500 for it, as they do when a policy of it cannot be applied. Otherwise Envoy would keep an older
 * version, which its author no longer wants, and a new Envoy would have none.
 */

import type { BackendItem } from "../../plan/backend.ts";
import type { ItemId } from "../../plan/plan.ts";
import { tenantLimits } from "../../plan/tenant-limits.ts";
import type { XdsResource } from "./ads/resource.ts";
import type { ResourceStore } from "./ads/resource-store.ts";
import { backendCluster, backendEndpoints, type ClusterSettings } from "./compile/backend-cluster.ts";
import type { ClusterUses } from "./compile/cluster-uses.ts";
import type { Model } from "./compile/model.ts";
import { backendOfCluster, clusterName, endpointsName, type Variant } from "./compile/names.ts";

export interface BackendResourcesOptions {
  readonly gateway: string;
  readonly model: Model;
  readonly store: ResourceStore;
  readonly uses: ClusterUses;
  readonly clientCertificate: () => ItemId | undefined;
  /** How long a cluster outlives its last route: requests in flight may still use it. */
  readonly lingerMs: number;
}

interface Refused {
  /** As the plan has it. */
  readonly item: BackendItem;
  readonly versions: Set<string>;
}

const VARIANTS: readonly Variant[] = ["plain", "h2"];

export class BackendResources {
  readonly #options: BackendResourcesOptions;
  readonly #lingering: Map<string, NodeJS.Timeout> = new Map();
  readonly #refused: Map<ItemId, Refused> = new Map();

  constructor(options: BackendResourcesOptions) {
    this.#options = options;
  }

  /**
   * A backend of the plan as it can be served: unusable while it is still what Envoy has rejected.
   */
  servable(item: BackendItem): BackendItem {
    const refused = this.#refused.get(item.id);
    if (refused === undefined) return item;
    if (!this.#resourcesOf(item).some(({ version }) => refused.versions.has(version))) {
      this.#refused.delete(item.id);
      return item;
    }
    this.#refused.set(item.id, { ...refused, item });
    return { ...item, refused: "the data plane refuses the backend" };
  }

  /** Unusable backends as the plan has them. */
  refusedItems(): readonly BackendItem[] {
    return Array.from(this.#refused.values(), ({ item }) => item);
  }

  isRefused(id: ItemId): boolean {
    return this.#refused.has(id);
  }

  /** A NACK of a cluster or of endpoints. Returns the backend, if they belong to one. */
  refuse(name: string, version: string): BackendItem | undefined {
    const id = backendOfCluster(this.#options.gateway, name);
    const known = this.#refused.get(id);
    const item = known?.item ?? this.#options.model.get("backend", id);
    if (item === undefined) return undefined;
    const versions = known?.versions ?? new Set<string>();
    this.#refused.set(id, { item, versions: versions.add(version) });
    return item;
  }

  forget(id: ItemId): void {
    this.#refused.delete(id);
  }

  compile(id: ItemId): void {
    const { gateway, model, store, uses } = this.#options;
    const backend = model.get("backend", id);
    for (const variant of VARIANTS) {
      const name = clusterName(gateway, id, variant);
      if (backend === undefined || !uses.isUsed(name)) {
        this.#linger(name, id);
        continue;
      }
      clearTimeout(this.#lingering.get(name));
      this.#lingering.delete(name);
      const use = { variant, isRetried: uses.isRetried(name) };
      store.set(backendCluster(backend, use, this.#settings()));
      store.set(backendEndpoints(backend));
    }
  }

  close(): void {
    for (const timer of this.#lingering.values()) clearTimeout(timer);
    this.#lingering.clear();
  }

  #resourcesOf(item: BackendItem): readonly XdsResource[] {
    const settings = this.#settings();
    // All that it can be: no rule uses it while it is unusable.
    const clusters = VARIANTS.flatMap((variant) =>
      [false, true].map((isRetried) => backendCluster(item, { variant, isRetried }, settings)),
    );
    return [...clusters, backendEndpoints(item)];
  }

  #settings(): ClusterSettings {
    const { clientCertificate, model } = this.#options;
    return { clientCertificate: clientCertificate(), limits: tenantLimits(model.gateway?.tenantLimits) };
  }

  /** Removes a cluster after a while, and the endpoints with their last cluster. */
  #linger(name: string, backend: ItemId): void {
    const { gateway, store, lingerMs } = this.#options;
    if (store.get("cluster", name) === undefined || this.#lingering.has(name)) return;
    const timer = setTimeout(() => {
      this.#lingering.delete(name);
      store.delete("cluster", name);
      const others = VARIANTS.map((variant) => clusterName(gateway, backend, variant));
      if (others.every((other) => store.get("cluster", other) === undefined))
        store.delete("endpoints", endpointsName(gateway, backend));
    }, lingerMs);
    timer.unref();
    this.#lingering.set(name, timer);
  }
}
