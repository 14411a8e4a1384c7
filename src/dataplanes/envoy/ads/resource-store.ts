import type { XdsKind, XdsResource } from "./resource.ts";

/** A stream that the store notifies of changes. */
export interface StoreWatcher {
  changed(kind: XdsKind, name: string): void;
  /** The secrets of all names that the pattern matches have changed, in every spelling. */
  secretsChanged(pattern: string): void;
}

/** Finds a secret by the server name that Envoy asks for. */
export interface SecretFinder {
  find(name: string): XdsResource | undefined;
  /**
   * Whether the name is part of the configuration. All others are on-demand names, of which clients
   * can make up any number.
   */
  isConfigured(name: string): boolean;
  /** The owner whose certificate is served for the name. */
  ownerOf(name: string): string | undefined;
}

type Stored = Exclude<XdsKind, "secret">;

/** The current resources of one Gateway. */
export class ResourceStore {
  readonly #resources: Readonly<Record<Stored, Map<string, XdsResource>>> = {
    cluster: new Map(),
    endpoints: new Map(),
    scope: new Map(),
    extension: new Map(),
    listener: new Map(),
  };
  readonly #watchers: Set<StoreWatcher> = new Set();
  readonly secrets: SecretFinder;

  constructor(secrets: SecretFinder) {
    this.secrets = secrets;
  }

  /** Returns whether the resource is new or has changed. */
  set(resource: XdsResource): boolean {
    const { kind, name } = resource;
    if (kind === "secret") throw new TypeError("secrets are found, not stored");
    const before = this.#resources[kind].get(name);
    this.#resources[kind].set(name, resource);
    if (before?.version === resource.version) return false;
    this.#notify(kind, name);
    return true;
  }

  delete(kind: Stored, name: string): void {
    if (this.#resources[kind].delete(name)) this.#notify(kind, name);
  }

  get(kind: XdsKind, name: string): XdsResource | undefined {
    return kind === "secret" ? this.secrets.find(name) : this.#resources[kind].get(name);
  }

  names(kind: XdsKind): Iterable<string> {
    return kind === "secret" ? [] : this.#resources[kind].keys();
  }

  secretChanged(name: string): void {
    this.#notify("secret", name);
  }

  secretsChanged(pattern: string): void {
    for (const watcher of this.#watchers) watcher.secretsChanged(pattern);
  }

  watch(watcher: StoreWatcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: StoreWatcher): void {
    this.#watchers.delete(watcher);
  }

  #notify(kind: XdsKind, name: string): void {
    for (const watcher of this.#watchers) watcher.changed(kind, name);
  }
}
