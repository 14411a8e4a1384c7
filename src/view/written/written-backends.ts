import { type Key, keyFor } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { Route } from "../../api/routes.ts";
import type { BackendView } from "../merged-state.ts";

const SERVICE_OF_SLICE = "kubernetes.io/service-name";

/** Ready endpoints of the Services that may be read. */
export class BackendIndex {
  readonly #resources: ReadonlyMap<Key, Resource>;
  /** By the key of the Service. */
  readonly #ready: Map<Key, number> = new Map();

  constructor(resources: ReadonlyMap<Key, Resource>) {
    this.#resources = resources;
    for (const slice of resources.values()) {
      if (slice.kind !== "EndpointSlice") continue;
      const service = slice.metadata.labels?.[SERVICE_OF_SLICE];
      if (service === undefined) continue;
      const key = keyFor("Service", slice.metadata.namespace ?? "", service);
      const ready = (slice.endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false).length;
      this.#ready.set(key, (this.#ready.get(key) ?? 0) + ready);
    }
  }

  of(route: Route): readonly BackendView[] {
    const found = new Map<string, BackendView>();
    for (const { backendRefs } of route.spec.rules ?? []) {
      for (const reference of backendRefs ?? []) {
        const { kind, namespace = route.metadata.namespace ?? "", name, port, weight } = reference;
        const key = keyFor("Service", namespace, name);
        const view: BackendView = {
          kind,
          namespace,
          name,
          ...(port === undefined ? {} : { port }),
          weight,
          ...(this.#resources.has(key) ? { endpoints: this.#ready.get(key) ?? 0 } : { isUnread: true }),
        };
        found.set(`${key}:${port}:${weight}`, view);
      }
    }
    return [...found.values()];
  }
}
