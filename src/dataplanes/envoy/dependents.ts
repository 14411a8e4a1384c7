/** What has to be compiled again when an item of the plan changes. */

import type { BackendItem } from "../../plan/backend.ts";
import { coversPattern, isWildcard } from "../../plan/hostname.ts";
import type { HostItem, ItemId, ListenerItem, PlanItem, PortItem } from "../../plan/plan.ts";
import { sameLimits } from "../../plan/tenant-limits.ts";
import type { ResourceStore } from "./ads/resource-store.ts";
import type { ClusterUses } from "./compile/cluster-uses.ts";
import { hasOwnTls, isHttp, type Model } from "./compile/model.ts";
import { certificateSecretName, needsTable, WITHOUT_NAME } from "./compile/names.ts";
import { clientsMark, portMark } from "./compile/own-clients.ts";

export interface Dirty {
  /** Patterns by port. */
  readonly scopes: Map<ItemId, Set<string>>;
  readonly ports: Set<ItemId>;
  readonly backends: Set<ItemId>;
}

export function nothingDirty(): Dirty {
  return { scopes: new Map(), ports: new Set(), backends: new Set() };
}

export interface DependentsOptions {
  readonly model: Model;
  readonly uses: ClusterUses;
  readonly store: ResourceStore;
  /** Listeners that show a certificate. */
  readonly usersOf: (certificate: ItemId) => Iterable<ItemId>;
}

export class ResourceDependents {
  readonly #model: Model;
  readonly #uses: ClusterUses;
  readonly #store: ResourceStore;
  readonly #usersOf: (certificate: ItemId) => Iterable<ItemId>;

  constructor({ model, uses, store, usersOf }: DependentsOptions) {
    this.#model = model;
    this.#uses = uses;
    this.#store = store;
    this.#usersOf = usersOf;
  }

  /**
   * Marks what depends on the item; `other` is the item of the same id in the previous or next
   * plan.
   */
  touch(item: PlanItem, other: PlanItem | undefined, dirty: Dirty): void {
    switch (item.type) {
      case "gateway":
        this.#touchTlsBackends(dirty);
        if (!sameLimits(item.tenantLimits, other?.type === "gateway" ? other.tenantLimits : undefined))
          this.#touchLimited(dirty);
        return;
      case "port":
        dirty.ports.add(item.id);
        if (other?.type === "port" && sameForScopes(item, other)) return;
        for (const pattern of this.#model.patternsUnder(item.id, "")) markScope(dirty, item.id, pattern);
        return;
      case "listener":
        this.#touchListener(item, other?.type === "listener" ? other : undefined, dirty);
        return;
      case "host":
        this.#touchHost(item, dirty);
        return;
      case "backend":
        dirty.backends.add(item.id);
        for (const user of this.#uses.dependents(item.id)) {
          if (!("pattern" in user)) dirty.ports.add(user.port);
          else if (other?.type !== "backend" || !sameForRoutes(item, other))
            markScope(dirty, user.port, user.pattern);
        }
        return;
      case "guard":
        for (const user of this.#uses.dependents(item.id)) {
          if ("pattern" in user) markScope(dirty, user.port, user.pattern);
          else dirty.ports.add(user.port);
        }
        return;
      case "certificate":
        this.#certificateChanged(item.id, dirty);
        return;
    }
  }

  #touchTlsBackends(dirty: Dirty): void {
    for (const backend of this.#model.backends())
      if (backend.tls !== undefined) dirty.backends.add(backend.id);
  }

  #touchLimited(dirty: Dirty): void {
    for (const { id } of this.#model.backends()) dirty.backends.add(id);
    for (const { id, protocol } of this.#model.ports()) if (protocol === "udp") dirty.ports.add(id);
  }

  #touchListener(listener: ListenerItem, other: ListenerItem | undefined, dirty: Dirty): void {
    const { port, hostname, tls } = listener;
    const chained =
      !isHttp(listener) ||
      hasOwnTls(tls) ||
      [...this.#model.streamListeners(port)].length > 0 ||
      [...this.#model.chainedListeners(port)].some((each) => coversPattern(each.hostname, hostname));
    if (chained) dirty.ports.add(port);
    if (listener.protocol === "HTTPS") this.#touchYielding(port, dirty);
    if (tls !== undefined) this.#listenerSecretsChanged(listener);
    const moved =
      other === undefined ||
      other.port !== port ||
      other.hostname !== hostname ||
      other.protocol !== listener.protocol;
    // Scopes ask for what the clients of the listener have met.
    const asksOthers = other !== undefined && !sameClients(other, listener);
    if (!moved && !asksOthers) return;
    for (const pattern of this.#model.patternsUnder(port, hostname)) markScope(dirty, port, pattern);
    for (const host of this.#model.hosts(listener.id)) markScope(dirty, port, host.hostname);
  }

  /** Who has a name may have changed at the ports after this one. */
  #touchYielding(changed: ItemId, dirty: Dirty): void {
    const own = this.#model.get("port", changed)?.port ?? 0;
    const others = [...this.#model.ports()].filter(
      ({ id, protocol }) => id !== changed && protocol === "tls",
    );
    for (const { id, port } of others) if (port > own) dirty.ports.add(id);
    if (others.some(({ port }) => port < own)) dirty.ports.add(changed);
  }

  #touchHost(host: HostItem, dirty: Dirty): void {
    const listener = this.#model.get("listener", host.listener);
    if (listener === undefined) return;
    if (!isHttp(listener)) {
      dirty.ports.add(listener.port);
      return;
    }
    markScope(dirty, listener.port, host.hostname);
    if (!needsTable(host.hostname)) return;
    // Narrower hosts of the listener end with this one's rules.
    for (const { hostname } of this.#model.hosts(listener.id)) {
      if (coversPattern(host.hostname, hostname)) markScope(dirty, listener.port, hostname);
    }
  }

  #certificateChanged(id: ItemId, dirty: Dirty): void {
    this.#store.secretChanged(certificateSecretName(id));
    if (this.#model.gateway?.clientCertificate === id) this.#touchTlsBackends(dirty);
    for (const user of this.#usersOf(id)) {
      const listener = this.#model.get("listener", user);
      if (listener === undefined) continue;
      this.#listenerSecretsChanged(listener);
      // Chains that name their certificates name only those that can be shown.
      if (!isHttp(listener) || this.#model.yields(listener)) dirty.ports.add(listener.port);
    }
  }

  #listenerSecretsChanged({ hostname, tls }: ListenerItem): void {
    for (const id of tls?.certificates ?? []) this.#store.secretChanged(certificateSecretName(id));
    if (hostname === "") this.#store.secretChanged(WITHOUT_NAME);
    else if (!isWildcard(hostname)) this.#store.secretChanged(hostname);
    this.#store.secretsChanged(hostname);
  }
}

/** What of a port stands in its scopes. */
function sameForScopes(one: PortItem, other: PortItem): boolean {
  return one.port === other.port && one.protocol === other.protocol && portMark(one) === portMark(other);
}

/** Changes of the port are seen there. */
function sameClients(one: ListenerItem, other: ListenerItem): boolean {
  return clientsMark(one, undefined) === clientsMark(other, undefined);
}

/** What of a backend stands in routes and not in its cluster. */
function sameForRoutes(one: BackendItem, other: BackendItem): boolean {
  return (
    one.refused === other.refused && JSON.stringify(one.persistence) === JSON.stringify(other.persistence)
  );
}

function markScope(dirty: Dirty, port: ItemId, pattern: string): void {
  const patterns = dirty.scopes.get(port) ?? new Set();
  dirty.scopes.set(port, patterns.add(pattern));
}
