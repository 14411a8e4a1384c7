import type { Kind, Resource } from "./resource.ts";

/** What one stream is told of; the store does not know what it does with it. */
export interface StoreWatcher {
  changed(kind: Kind, name: string): void;
  /** Secrets of names that a pattern matches, in whatever spelling. */
  secretsChanged(pattern: string): void;
}

/** Secrets are found by the name that a client asks for. */
export interface SecretFinder {
  find(name: string): Resource | undefined;
  /**
   * Whether the name is part of the configuration; others are of the client's making, and there is
   * no end to them.
   */
  isConfigured(name: string): boolean;
  /** Whose certificate the name gets to see. */
  ownerOf(name: string): string | undefined;
}

type Stored = Exclude<Kind, "secret">;

/** The current resources of one Gateway. */
export class ResourceStore {
  readonly #resources: Readonly<Record<Stored, Map<string, Resource>>> = {
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

  /** Whether anything has changed. */
  set(resource: Resource): boolean {
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

  get(kind: Kind, name: string): Resource | undefined {
    return kind === "secret" ? this.secrets.find(name) : this.#resources[kind].get(name);
  }

  names(kind: Kind): Iterable<string> {
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

  #notify(kind: Kind, name: string): void {
    for (const watcher of this.#watchers) watcher.changed(kind, name);
  }
}
