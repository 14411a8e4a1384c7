/**
 * One Gateway's plan, kept compiled: a delta goes in, and the resources that it really changes come out in the store.
 *
 * What a change touches is found from both the old and the new item, so removal, renaming and moving need no cases of their own.
 */

import { coversPattern, isWildcard } from "../../plan/hostname.ts";
import type { HostItem, ItemId, ListenerItem, PlanDelta, PlanItem, PortItem } from "../../plan/plan.ts";
import { sameLimits, tenantLimits } from "../../plan/tenant-limits.ts";
import type { Answer } from "./ads/ads-stream.ts";
import { resource } from "./ads/resource.ts";
import { ResourceStore } from "./ads/resource-store.ts";
import { backendCluster, backendEndpoints } from "./compile/backend-cluster.ts";
import { ClusterUses } from "./compile/cluster-uses.ts";
import { isHttp, Model } from "./compile/model.ts";
import {
  certificateName,
  clusterName,
  endpointsName,
  listenerWord,
  needsTable,
  TENANCY_FILTER,
  WITHOUT_NAME,
} from "./compile/names.ts";
import { compilePort, keeper, type PortOptions } from "./compile/port-listener.ts";
import { compileScope } from "./compile/scope.ts";
import { Secrets } from "./compile/secrets.ts";
import { tenancyScript } from "./compile/tenancy-script.ts";
import { Fates } from "./fates.ts";
import { extension } from "./messages/core.ts";
import { luaFilter } from "./messages/route.ts";

export interface GatewayConfigOptions extends Omit<PortOptions, "isUsable"> {
  readonly gateway: string;
  /** How long a cluster outlives its last route: requests under way may still turn to it. */
  readonly lingerMs: number;
}

interface Dirty {
  /** Patterns by port. */
  readonly scopes: Map<ItemId, Set<string>>;
  readonly ports: Set<ItemId>;
  readonly backends: Set<ItemId>;
}

interface KnownScope {
  readonly name: string;
  readonly listener: ItemId;
}

export class GatewayConfig {
  readonly #options: GatewayConfigOptions;
  readonly #model: Model = new Model();
  readonly #certificateUsers: Map<ItemId, Set<ItemId>> = new Map();
  readonly fates: Fates = new Fates(this.#model, (id) => this.#certificateUsers.get(id) ?? []);
  readonly #secrets: Secrets = new Secrets(this.#model, (id) => this.#isUsable(id));
  readonly store: ResourceStore = new ResourceStore(this.#secrets);
  readonly #uses: ClusterUses = new ClusterUses();
  readonly #scopes: Map<ItemId, Map<string, KnownScope>> = new Map();
  /** Scopes that only the script finds, with their listeners. */
  readonly #table: Map<string, ItemId> = new Map();
  readonly #lingering: Map<string, NodeJS.Timeout> = new Map();
  #tableChanged = true;

  readonly #isUsable = (id: ItemId): boolean => this.fates.certificateProblem(id) === undefined;

  constructor(options: GatewayConfigOptions) {
    this.#options = options;
    this.store.set(keeper());
    this.#compileTable();
  }

  get isEmpty(): boolean {
    return this.#model.items()[Symbol.iterator]().next().done === true;
  }

  apply(delta: PlanDelta): void {
    const dirty: Dirty = { scopes: new Map(), ports: new Set(), backends: new Set() };
    const changes: { readonly before: PlanItem | undefined; readonly after: PlanItem | undefined }[] = [];
    for (const id of delta.removes) changes.push({ before: this.#model.item(id), after: undefined });
    for (const item of delta.upserts) changes.push({ before: this.#model.item(item.id), after: item });
    for (const { before, after } of changes) if (before !== undefined) this.#touch(before, after, dirty);
    for (const { before, after } of changes) {
      if (before !== undefined) this.#forget(before);
      if (after !== undefined) this.#learn(after);
    }
    for (const { before, after } of changes) if (after !== undefined) this.#touch(after, before, dirty);
    this.#compile(dirty);
    this.fates.applied(delta);
  }

  /** An Envoy's answer; what it says of versions that are no longer current is of no interest. */
  answered(replica: string, answer: Answer): void {
    const { kind, name, version, problem } = answer;
    if (this.store.get(kind, name)?.version !== version) return;
    if (kind !== "secret") this.fates.answered(replica, answer);
    else if (problem !== undefined) {
      const certificate = this.#secrets.certificateOf(name);
      if (certificate !== undefined) this.fates.certificateRefused(certificate);
    }
  }

  /** Where a port is bound, if one can connect to it. */
  tcpPort(id: ItemId): { readonly address: string; readonly port: number } | undefined {
    const port = this.#model.get("port", id);
    return port?.transport === "tcp" ? this.#options.bind(port) : undefined;
  }

  close(): void {
    for (const timer of this.#lingering.values()) clearTimeout(timer);
    this.#lingering.clear();
  }

  #learn(item: PlanItem): void {
    this.#model.set(item);
    if (item.type === "certificate") {
      this.#secrets.set(item);
      this.fates.certificateTouched(item.id);
    }
    if (item.type !== "listener") return;
    for (const certificate of item.tls?.certificates ?? []) {
      const users = this.#certificateUsers.get(certificate) ?? new Set();
      this.#certificateUsers.set(certificate, users.add(item.id));
    }
  }

  #forget(item: PlanItem): void {
    this.#model.delete(item.id);
    if (item.type === "certificate") this.#secrets.delete(item.id);
    if (item.type !== "listener") return;
    for (const certificate of item.tls?.certificates ?? []) {
      const users = this.#certificateUsers.get(certificate);
      users?.delete(item.id);
      if (users?.size === 0) this.#certificateUsers.delete(certificate);
    }
  }

  /** Marks what depends on the item; `other` is what it is instead before or after. */
  #touch(item: PlanItem, other: PlanItem | undefined, dirty: Dirty): void {
    switch (item.type) {
      case "gateway":
        this.#touchTlsBackends(dirty);
        if (!sameLimits(item.tenantLimits, other?.type === "gateway" ? other.tenantLimits : undefined))
          this.#touchLimited(dirty);
        return;
      case "port":
        dirty.ports.add(item.id);
        if (other?.type === "port" && other.port === item.port && other.protocol === item.protocol) return;
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
          else if (other?.type !== "backend" || other.refused !== item.refused)
            markScope(dirty, user.port, user.pattern);
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
      tls?.minVersion !== undefined ||
      tls?.maxVersion !== undefined ||
      tls?.alpn !== undefined ||
      [...this.#model.streamListeners(port)].length > 0;
    if (chained) dirty.ports.add(port);
    if (listener.protocol === "HTTPS") this.#touchYielding(port, dirty);
    if (tls !== undefined) this.#listenerSecretsChanged(listener);
    const moved =
      other === undefined ||
      other.port !== port ||
      other.hostname !== hostname ||
      other.protocol !== listener.protocol;
    if (!moved) return;
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
    this.store.secretChanged(certificateName(id));
    if (this.#model.gateway?.clientCertificate === id) this.#touchTlsBackends(dirty);
    for (const user of this.#certificateUsers.get(id) ?? []) {
      const listener = this.#model.get("listener", user);
      if (listener === undefined) continue;
      this.#listenerSecretsChanged(listener);
      // Chains that name their certificates name only those that can be shown.
      if (!isHttp(listener) || this.#model.yields(listener)) dirty.ports.add(listener.port);
    }
  }

  #listenerSecretsChanged({ hostname, tls }: ListenerItem): void {
    for (const id of tls?.certificates ?? []) this.store.secretChanged(certificateName(id));
    if (hostname === "") this.store.secretChanged(WITHOUT_NAME);
    else if (!isWildcard(hostname)) this.store.secretChanged(hostname);
    this.store.secretsChanged(hostname);
  }

  #compile(dirty: Dirty): void {
    for (const [port, patterns] of dirty.scopes) {
      for (const pattern of patterns) this.#compileScope(port, pattern);
    }
    for (const port of dirty.ports) this.#compilePort(port);
    for (const id of new Set([...dirty.backends, ...this.#uses.takeChanged()])) this.#compileBackend(id);
    if (this.#tableChanged) this.#compileTable();
  }

  #compileScope(portId: ItemId, pattern: string): void {
    const port = this.#model.get("port", portId);
    const known = this.#scopes.get(portId) ?? new Map<string, KnownScope>();
    this.#scopes.set(portId, known);
    const before = known.get(pattern);
    const scope =
      port === undefined || !isHttpPort(port) ? undefined : compileScope(this.#model, port, pattern);
    const user = { port: portId, pattern };
    this.#uses.set(user, scope?.clusters ?? new Map(), scope?.backends ?? new Set());
    const name = scope?.resource.name;
    if (before !== undefined && before.name !== name) this.#dropScope(before);
    if (scope === undefined || name === undefined) {
      known.delete(pattern);
      if (known.size === 0) this.#scopes.delete(portId);
      return;
    }
    known.set(pattern, { name, listener: scope.listener.id });
    if (this.store.set(scope.resource) || before?.listener !== scope.listener.id) {
      this.fates.scopeChanged(name, scope.listener.id);
    }
    if (needsTable(pattern) && this.#table.get(name) !== scope.listener.id) {
      this.#table.set(name, scope.listener.id);
      this.#tableChanged = true;
      this.fates.tableChanged(scope.listener.id);
    }
  }

  #dropScope({ name }: KnownScope): void {
    this.store.delete("scope", name);
    this.fates.scopeRemoved(name);
    if (this.#table.delete(name)) this.#tableChanged = true;
  }

  #compilePort(id: ItemId): void {
    const port = this.#model.get("port", id);
    if (port === undefined) {
      this.#uses.set({ port: id }, new Map(), new Set());
      this.#dropOwn(id);
      this.store.delete("listener", id);
      return;
    }
    if (!(port.port > 0 && port.port < 65_536)) {
      this.store.delete("listener", id);
      this.fates.portImpossible(id, `port ${port.port} is not a port`);
      return;
    }
    const compiled = compilePort(this.#model, port, { ...this.#options, isUsable: this.#isUsable });
    const clusters = new Map(
      [...compiled.clusters].map(([name, backend]) => [name, { backend, variant: "plain" as const }]),
    );
    this.#uses.set({ port: id }, clusters, compiled.backends);
    for (const each of compiled.own) this.store.set(each);
    if (compiled.own.length === 0) this.#dropOwn(id);
    if (this.store.set(compiled.resource)) this.fates.portChanged(id);
  }

  #dropOwn(port: ItemId): void {
    this.store.delete("cluster", `${port}#udp`);
    this.store.delete("endpoints", `${port}#udp`);
  }

  #compileBackend(id: ItemId): void {
    const backend = this.#model.get("backend", id);
    for (const variant of ["plain", "h2"] as const) {
      const name = clusterName(this.#options.gateway, id, variant);
      if (backend === undefined || !this.#uses.isUsed(name)) {
        this.#linger(name, id);
        continue;
      }
      clearTimeout(this.#lingering.get(name));
      this.#lingering.delete(name);
      const limits = tenantLimits(this.#model.gateway?.tenantLimits);
      this.store.set(
        backendCluster(backend, variant, { clientCertificate: this.#clientCertificate(), limits }),
      );
      this.store.set(backendEndpoints(backend));
    }
  }

  /** A cluster opens only when it has its certificate: it must never wait for one that will not come. */
  #clientCertificate(): ItemId | undefined {
    const id = this.#model.gateway?.clientCertificate;
    return id !== undefined && this.#isUsable(id) ? id : undefined;
  }

  /** Lets go of a cluster after a while, and of its endpoints with the last of its clusters. */
  #linger(name: string, backend: ItemId): void {
    if (this.store.get("cluster", name) === undefined || this.#lingering.has(name)) return;
    const timer = setTimeout(() => {
      this.#lingering.delete(name);
      this.store.delete("cluster", name);
      const { gateway } = this.#options;
      const others = (["plain", "h2"] as const).map((variant) => clusterName(gateway, backend, variant));
      if (others.every((other) => this.store.get("cluster", other) === undefined)) {
        this.store.delete("endpoints", endpointsName(gateway, backend));
      }
    }, this.#options.lingerMs);
    timer.unref();
    this.#lingering.set(name, timer);
  }

  #compileTable(): void {
    this.#tableChanged = false;
    const lua = luaFilter(
      tenancyScript(
        this.#table.entries().map(([scope, id]) => [scope, listenerWord(this.#options.gateway, id)] as const),
      ),
    );
    const content = extension(TENANCY_FILTER, "envoy.extensions.filters.http.lua.v3.Lua", lua);
    const needs = [...this.#table.keys()].map((name) => ({ kind: "scope" as const, name }));
    this.store.set(resource("extension", TENANCY_FILTER, content, { needs }));
  }
}

function markScope(dirty: Dirty, port: ItemId, pattern: string): void {
  const patterns = dirty.scopes.get(port) ?? new Set();
  dirty.scopes.set(port, patterns.add(pattern));
}

function isHttpPort({ protocol }: PortItem): boolean {
  return protocol === "http" || protocol === "tls";
}
