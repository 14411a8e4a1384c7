import type { DeltaRequest } from "../messages/discovery.ts";
import type { Kind } from "./resource.ts";
import type { ResourceStore } from "./resource-store.ts";

/** What one client wants of one kind, what it has, and what it has yet to be told. */
export class Subscription {
  readonly kind: Kind;
  /** Everything that there is, rather than names. */
  wildcard = false;
  readonly names: Set<string> = new Set();
  /** Versions that the client has, or that are on their way to it. */
  readonly held: Map<string, string> = new Map();
  /** What the client has answered for at least once, with yes or no. */
  readonly settled: Set<string> = new Set();
  readonly dirty: Set<string> = new Set();
  /** A first answer is due even if there is nothing to tell. */
  greeting = true;

  constructor(kind: Kind) {
    this.kind = kind;
  }

  wants(name: string): boolean {
    return this.wildcard || this.names.has(name);
  }

  /** The first request of this kind on a stream: a returning client says what it has. */
  begin(request: DeltaRequest, store: ResourceStore): void {
    this.wildcard = request.subscribe.length === 0 || request.subscribe.includes("*");
    for (const [name, version] of request.initialVersions) {
      this.held.set(name, version);
      this.settled.add(name);
      if (store.get(this.kind, name)?.version !== version) this.dirty.add(name);
    }
    if (request.initialVersions.size > 0 || !this.wildcard) this.greeting = false;
    if (this.wildcard) {
      for (const name of store.names(this.kind)) if (!this.held.has(name)) this.dirty.add(name);
    }
  }

  subscribe(names: readonly string[], initial: ReadonlyMap<string, string>): void {
    for (const name of names) {
      if (name === "*") continue;
      this.names.add(name);
      // Who asks again has forgotten, whatever was sent before.
      if (initial.has(name)) continue;
      this.held.delete(name);
      this.dirty.add(name);
    }
  }

  unsubscribe(names: readonly string[]): void {
    for (const name of names) {
      if (name === "*") this.wildcard = false;
      else this.forget(name);
    }
  }

  forget(name: string): void {
    this.names.delete(name);
    this.held.delete(name);
    this.settled.delete(name);
    this.dirty.delete(name);
  }
}
