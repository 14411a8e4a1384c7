import type { DeltaRequest } from "../messages/discovery.ts";
import type { XdsKind } from "./resource.ts";
import type { ResourceStore } from "./resource-store.ts";

/**
 * The subscription of one Envoy to one type: what it asked for, what it has, what is to be sent.
 */
export class Subscription {
  readonly kind: XdsKind;
  /** A wildcard subscription: all resources of the type, not only `names`. */
  wildcard = false;
  readonly names: Set<string> = new Set();
  /** Versions that Envoy has, or that are on their way to it. */
  readonly clientVersions: Map<string, string> = new Map();
  /** Names of which Envoy has answered for at least one version, with ACK or NACK. */
  readonly settled: Set<string> = new Set();
  readonly dirty: Set<string> = new Set();
  /** The first response is due, even if there is no resource to send. */
  needsFirstResponse = true;

  constructor(kind: XdsKind) {
    this.kind = kind;
  }

  wants(name: string): boolean {
    return this.wildcard || this.names.has(name);
  }

  /** The first request on a stream. An Envoy that reconnects says which versions it has. */
  begin(request: DeltaRequest, store: ResourceStore): void {
    this.wildcard = request.subscribe.length === 0 || request.subscribe.includes("*");
    for (const [name, version] of request.initialVersions) {
      this.clientVersions.set(name, version);
      this.settled.add(name);
      if (store.get(this.kind, name)?.version !== version) this.dirty.add(name);
    }
    if (request.initialVersions.size > 0 || !this.wildcard) this.needsFirstResponse = false;
    if (this.wildcard) {
      for (const name of store.names(this.kind)) if (!this.clientVersions.has(name)) this.dirty.add(name);
    }
  }

  subscribe(names: readonly string[], initial: ReadonlyMap<string, string>): void {
    for (const name of names) {
      if (name === "*") continue;
      this.names.add(name);
      // An Envoy that subscribes again no longer has the resource, whatever was sent before.
      if (initial.has(name)) continue;
      this.clientVersions.delete(name);
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
    this.clientVersions.delete(name);
    this.settled.delete(name);
    this.dirty.delete(name);
  }
}
