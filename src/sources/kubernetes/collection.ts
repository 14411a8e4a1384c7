import { type Key, keyFor } from "../../api/key.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import { type ApiObject, collectionPath } from "../../kubernetes/api-object.ts";
import type { KubernetesClient, Query } from "../../kubernetes/client.ts";
import { isClusterScoped, PLURAL_OF_KIND } from "../../kubernetes/kinds.ts";
import { type ListWatchTiming, listWatch } from "../../kubernetes/list-watch.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import { isPolicy } from "./policy-shape.ts";
import { shaperOf } from "./shape.ts";

/** Where in the cluster a collection is read: everywhere, or in one namespace. */
export type WatchScope = string | undefined;

export interface CollectionOptions {
  readonly client: KubernetesClient;
  readonly kind: Kind;
  readonly scope: WatchScope;
  readonly emit: (key: Key, resource: Resource | undefined) => void;
  readonly onListed: () => void;
  readonly onForbidden: () => void;
  readonly observer?: KubernetesObserver;
  readonly timing?: Partial<ListWatchTiming>;
}

interface Read {
  readonly key: Key;
  readonly version: string;
  readonly resource: Resource | undefined;
}

/**
 * The objects of one kind in one scope: what has been emitted of them, so that a new list emits
 * only differences.
 */
export class WatchedCollection {
  readonly #options: CollectionOptions;
  readonly #known = new Map<Key, string>();
  /** What was emitted of policies: it holds on when a newer version cannot be read. */
  readonly #policies = new Map<Key, Resource>();

  constructor(options: CollectionOptions) {
    this.#options = options;
  }

  run(apiVersion: string, signal: AbortSignal): Promise<"stopped" | "absent"> {
    const { client, kind, observer, timing, onListed, onForbidden } = this.#options;
    const shape = shaperOf(kind, apiVersion);
    const read = (object: ApiObject): Read => {
      const key = keyFor(kind, object.metadata.namespace ?? "", object.metadata.name);
      const version = object.metadata.resourceVersion ?? "";
      const shaped = shape(object, this.#policies.get(key));
      const wrong = "problem" in shaped ? `it is left out, ${shaped.problem}` : shaped.warning;
      // A relist or a status write of others brings the same object again: one line a version is
      // enough.
      if (wrong !== undefined && this.#known.get(key) !== version) {
        observer?.log?.("warn", `${key} is not shaped as expected: ${wrong}`);
      }
      return { key, version, resource: "resource" in shaped ? shaped.resource : undefined };
    };
    return listWatch<Read>(
      {
        client,
        ...this.#place(apiVersion),
        read,
        onForbidden,
        replace: (objects) => {
          this.#replace(objects);
          onListed();
        },
        change: (changes) => {
          for (const { type, value } of changes) {
            if (type === "deleted") this.#remove(value.key);
            else this.#set(value);
          }
        },
        ...(observer === undefined ? {} : { observer }),
        ...(timing === undefined ? {} : { timing }),
      },
      signal,
    );
  }

  /** The collection is not watched any more: nothing of it exists for us. */
  clear(): void {
    for (const key of [...this.#known.keys()]) this.#remove(key);
  }

  #place(apiVersion: string): { readonly path: string; readonly query?: Query } {
    const { kind, scope } = this.#options;
    const plural = PLURAL_OF_KIND[kind];
    if (!isClusterScoped(kind)) return { path: collectionPath({ apiVersion, plural, namespace: scope }) };
    const path = collectionPath({ apiVersion, plural });
    return scope === undefined ? { path } : { path, query: { fieldSelector: `metadata.name=${scope}` } };
  }

  #replace(objects: readonly Read[]): void {
    const gone = new Set(this.#known.keys());
    for (const object of objects) {
      gone.delete(object.key);
      if (this.#known.get(object.key) !== object.version) this.#set(object);
    }
    for (const key of gone) this.#remove(key);
  }

  #set({ key, version, resource }: Read): void {
    this.#known.set(key, version);
    if (resource !== undefined && isPolicy(resource.kind)) this.#policies.set(key, resource);
    this.#options.emit(key, resource);
  }

  #remove(key: Key): void {
    this.#policies.delete(key);
    if (this.#known.delete(key)) this.#options.emit(key, undefined);
  }
}
