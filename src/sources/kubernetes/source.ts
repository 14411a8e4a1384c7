/**
 * A cluster as a source: list and watch of every kind that Mergeway reads, in batches. The first
 * batch comes when all kinds have been listed and what they refer to has been read: a controller
 * that starts must not judge by half of the facts.
 */
import { type Key, partsOf } from "../../api/key.ts";
import { GROUP_OF_KIND, type Kind, type Resource } from "../../api/resource.ts";
import { type ApiObject, collectionPath } from "../../kubernetes/api-object.ts";
import { pause } from "../../kubernetes/backoff.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import { groupVersion, isClusterScoped, PLURAL_OF_KIND } from "../../kubernetes/kinds.ts";
import { type ListWatchTiming, listWatch } from "../../kubernetes/list-watch.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import type { ResourceChange, Source } from "../source.ts";
import { Batch } from "./batch.ts";
import { WatchedCollection, type WatchScope } from "./collection.ts";
import { type Installation, watchInstallation } from "./installation.ts";
import { Interest } from "./interest.ts";
import { OnDemand } from "./on-demand.ts";
import { ServedKinds } from "./served-kinds.ts";
import { shaperOf } from "./shape.ts";

export interface KubernetesSourceOptions {
  readonly client: KubernetesClient;
  /** Classes of this controller are ours; Secrets of other controllers' Gateways are never read. */
  readonly controllerName: string;
  /** Read only these namespaces; everything without. */
  readonly namespaces?: readonly string[];
  /**
   * Kinds that may not be read count as absent: right for a person's look at a cluster. Without it
   * the first batch waits for the right: a controller that took a missing right for missing Secrets
   * would stop serving them.
   */
  readonly skipForbidden?: boolean;
  /**
   * Every time something about the installed Gateway API CRDs is learnt, and at least once before
   * the first batch.
   */
  readonly onInstallation?: (installation: Installation) => void;
  readonly observer?: KubernetesObserver;
  readonly timing?: Partial<ListWatchTiming>;
}

/** Read whole. */
const CORE_KINDS: readonly Kind[] = ["Namespace", "Service", "EndpointSlice"];
/** Read where referred to. */
const ON_DEMAND_KINDS: readonly Kind[] = ["Secret", "ConfigMap"];
/** Read where installed: everything that is a CRD. */
const CUSTOM_KINDS: readonly Kind[] = (Object.keys(GROUP_OF_KIND) as Kind[]).filter(
  (kind) => !CORE_KINDS.includes(kind) && !ON_DEMAND_KINDS.includes(kind),
);

const GATHER_MS = 5;
const WAIT_MS = 2_000;
const POLL_WITHOUT_CRDS_MS = 30_000;
const POLL_MS = 300_000;

export class KubernetesSource implements Source {
  readonly #options: KubernetesSourceOptions;

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
  }

  async run(sink: Sink, signal: AbortSignal): Promise<void> {
    await new Run(this.#options, sink, signal).run();
  }
}

/** Changes, and when the first of them was seen. */
type Sink = (changes: readonly ResourceChange[], since: number) => void;

interface WatchedKind {
  readonly collections: readonly WatchedCollection[];
  abort: AbortController;
}

/** One run of the source. */
class Run {
  readonly #options: KubernetesSourceOptions;
  readonly #signal: AbortSignal;
  readonly #scopes: readonly WatchScope[];
  readonly #batch: Batch;
  readonly #interest: Interest;
  readonly #onDemand: OnDemand;
  readonly #served: ServedKinds;
  readonly #watched = new Map<Kind, WatchedKind>();
  readonly #tasks = new Set<Promise<unknown>>();
  /** What must happen before the first batch. */
  readonly #awaited = new Set<string>(["kinds", "installation"]);
  #installation: Installation | undefined;

  constructor(options: KubernetesSourceOptions, sink: Sink, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#scopes = options.namespaces === undefined ? [undefined] : [...new Set(options.namespaces)];
    this.#interest = new Interest(options.controllerName);
    const observer = options.observer === undefined ? {} : { observer: options.observer };
    const shapers = new Map(ON_DEMAND_KINDS.map((kind) => [kind, shaperOf(kind, "v1")]));
    this.#onDemand = new OnDemand({
      client: options.client,
      shape: (kind, object) => shapers.get(kind)?.(object) ?? { problem: `${kind} is not read on demand` },
      emit: (key, resource) => this.#batch.add(key, resource),
      onRead: (key) => {
        this.#batch.arrived(key);
        this.#openWhenComplete();
      },
      isReadable: (namespace) => this.#isInScope(namespace),
      signal,
      ...observer,
    });
    this.#batch = new Batch({
      sink,
      gatherMs: GATHER_MS,
      waitMs: WAIT_MS,
      missing: () => this.#onDemand.unread,
    });
    this.#served = new ServedKinds({
      client: options.client,
      kinds: CUSTOM_KINDS,
      start: (kind, apiVersion) => this.#start(kind, apiVersion),
      stop: (kind) => this.#stop(kind),
      onKnown: () => this.#arrived("kinds"),
      pollMs: () => (this.#installation?.isKnown === false ? POLL_WITHOUT_CRDS_MS : POLL_MS),
      ...observer,
    });
  }

  async run(): Promise<void> {
    for (const kind of CORE_KINDS) this.#start(kind, groupVersion(kind, "v1"));
    for (const kind of ON_DEMAND_KINDS) this.#watchMetadata(kind);
    this.#keep(this.#served.run(this.#signal));
    const { client, observer, timing, onInstallation } = this.#options;
    const onChange = (installation: Installation): void => {
      this.#installation = installation;
      onInstallation?.(installation);
      this.#arrived("installation");
    };
    const options = {
      client,
      onChange,
      onNews: () => this.#served.poke(),
      ...(observer === undefined ? {} : { observer }),
      ...(timing === undefined ? {} : { timing }),
    };
    this.#keep(watchInstallation(options, this.#signal));
    await aborted(this.#signal);
    this.#batch.close();
    await Promise.allSettled([...this.#tasks]);
  }

  #start(kind: Kind, apiVersion: string): void {
    const before = this.#watched.get(kind);
    before?.abort.abort();
    const abort = new AbortController();
    const collections = before?.collections ?? this.#collectionsOf(kind);
    this.#watched.set(kind, { collections, abort });
    const signal = AbortSignal.any([this.#signal, abort.signal]);
    for (const collection of collections) this.#keep(this.#follow(collection, apiVersion, signal));
  }

  #stop(kind: Kind): void {
    const watched = this.#watched.get(kind);
    watched?.abort.abort();
    this.#watched.delete(kind);
    for (const collection of watched?.collections ?? []) collection.clear();
    for (const scope of this.#scopesOf(kind)) this.#arrived(listOf(kind, scope));
  }

  /**
   * A collection that is absent although its kind was served: discovery will say more, and
   * meanwhile it is tried again.
   */
  async #follow(collection: WatchedCollection, apiVersion: string, signal: AbortSignal): Promise<void> {
    while ((await collection.run(apiVersion, signal)) === "absent") {
      this.#served.poke();
      if (!(await pause(1_000, signal))) return;
    }
  }

  #collectionsOf(kind: Kind): readonly WatchedCollection[] {
    const { client, observer, timing } = this.#options;
    return this.#scopesOf(kind).map((scope) => {
      const list = listOf(kind, scope);
      if (!this.#isComplete) this.#awaited.add(list);
      return new WatchedCollection({
        client,
        kind,
        scope,
        emit: (key, resource) => this.#emit(key, resource),
        onListed: () => this.#arrived(list),
        onForbidden: () => this.#forbidden(list),
        ...(observer === undefined ? {} : { observer }),
        ...(timing === undefined ? {} : { timing }),
      });
    });
  }

  /** Classes belong to no namespace; of the Namespaces only the chosen ones are read. */
  #scopesOf(kind: Kind): readonly WatchScope[] {
    return isClusterScoped(kind) && kind !== "Namespace" ? [undefined] : this.#scopes;
  }

  #watchMetadata(kind: Kind): void {
    const { client, observer, timing } = this.#options;
    for (const scope of this.#scopes) {
      const list = listOf(kind, scope);
      this.#awaited.add(list);
      const read = ({ metadata }: ApiObject): readonly [Key, string] => [
        `${kind}/${metadata.namespace ?? ""}/${metadata.name}`,
        metadata.resourceVersion ?? "",
      ];
      const isHere = (key: Key): boolean => {
        const parts = partsOf(key);
        return parts.kind === kind && (scope === undefined || parts.namespace === scope);
      };
      const options = {
        client,
        path: collectionPath({ apiVersion: "v1", plural: PLURAL_OF_KIND[kind], namespace: scope }),
        metadataOnly: true,
        read,
        onForbidden: () => this.#forbidden(list),
        replace: (all: readonly (readonly [Key, string])[]) => {
          this.#onDemand.announceAll(new Map(all), isHere);
          this.#arrived(list);
        },
        change: (changes: readonly { type: "set" | "deleted"; value: readonly [Key, string] }[]) => {
          for (const { type, value } of changes) {
            this.#onDemand.announce(value[0], type === "deleted" ? "" : value[1]);
          }
        },
        ...(observer === undefined ? {} : { observer }),
        ...(timing === undefined ? {} : { timing }),
      };
      this.#keep(listWatch(options, this.#signal));
    }
  }

  #emit(key: Key, resource: Resource | undefined): void {
    this.#batch.add(key, resource);
    const { wanted, unwanted } = this.#interest.take(key, resource);
    for (const each of unwanted) this.#onDemand.unwant(each);
    for (const each of wanted) this.#onDemand.want(each);
  }

  #isInScope(namespace: string): boolean {
    return this.#options.namespaces?.includes(namespace) ?? true;
  }

  #forbidden(list: string): void {
    if (this.#options.skipForbidden) this.#arrived(list);
  }

  #arrived(what: string): void {
    if (this.#awaited.delete(what)) this.#openWhenComplete();
  }

  get #isComplete(): boolean {
    return this.#awaited.size === 0 && this.#onDemand.unread.size === 0;
  }

  #openWhenComplete(): void {
    if (this.#isComplete && !this.#signal.aborted) this.#batch.open();
  }

  #keep(task: Promise<unknown>): void {
    const kept = task.catch((error: unknown) => {
      this.#options.observer?.log?.("error", `a watch ended: ${String(error)}`);
    });
    this.#tasks.add(kept);
    void kept.finally(() => this.#tasks.delete(kept));
  }
}

function listOf(kind: Kind, scope: WatchScope): string {
  return `${kind} in ${scope ?? "all namespaces"}`;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
