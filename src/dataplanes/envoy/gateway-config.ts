/**
 * One Gateway's plan, kept compiled: a delta goes in, and the resources that it really changes come
 * out in the store.
 *
 * What a change touches is found from both the old and the new item, so removal, renaming and
 * moving need no cases of their own.
 */

import type { CertificateItem } from "../../plan/certificate.ts";
import type { ItemId, PlanDelta, PlanItem, PortItem } from "../../plan/plan.ts";
import type { Answer } from "./ads/ads-stream.ts";
import { resource, type XdsResource } from "./ads/resource.ts";
import { ResourceStore } from "./ads/resource-store.ts";
import { BackendResources } from "./backend-resources.ts";
import { ClusterUses } from "./compile/cluster-uses.ts";
import { Model, type RouteTracingOf } from "./compile/model.ts";
import { listenerWord, needsTable, scopeName, TENANCY_FILTER } from "./compile/names.ts";
import type { PortOptions } from "./compile/port-listener.ts";
import { type CompiledScope, compileScope, hostsOfScope, type ScopeContent } from "./compile/routes/scope.ts";
import { Secrets } from "./compile/secrets.ts";
import { sentinelListener } from "./compile/sentinel-listener.ts";
import { tenancyScript } from "./compile/tenancy-script.ts";
import { ScopeContainment } from "./containment/scope-containment.ts";
import { type Dirty, nothingDirty, ResourceDependents } from "./dependents.ts";
import { extension } from "./messages/core.ts";
import { luaFilter } from "./messages/route.ts";
import { PortResources } from "./port-resources.ts";
import { ProgrammingStatus } from "./programming-status.ts";
import { RetiredItems } from "./retired-items.ts";

export interface GatewayConfigOptions extends Omit<PortOptions, "isUsable"> {
  readonly gateway: string;
  /** How long a cluster outlives its last route: requests in flight may still use it. */
  readonly lingerMs: number;
  /** Absent: all routes are traced as the Gateway says. */
  readonly routeTracing?: RouteTracingOf | undefined;
}

interface KnownScope {
  readonly name: string;
  readonly port: ItemId;
  readonly pattern: string;
  readonly listener: ItemId;
}

export class GatewayConfig {
  readonly #options: GatewayConfigOptions;
  readonly #model: Model = new Model();
  readonly #certificateUsers: Map<ItemId, Set<ItemId>> = new Map();
  readonly #secrets: Secrets = new Secrets(this.#model, (id) => this.#isUsable(id));
  readonly store: ResourceStore = new ResourceStore(this.#secrets);
  readonly #uses: ClusterUses = new ClusterUses();
  readonly #scopes: Map<ItemId, Map<string, KnownScope>> = new Map();
  readonly #scopeOf: Map<string, KnownScope> = new Map();
  /** Scopes that only the script finds, with their listeners. */
  readonly #table: Map<string, ItemId> = new Map();
  readonly #dependents: ResourceDependents = new ResourceDependents({
    model: this.#model,
    uses: this.#uses,
    store: this.store,
    usersOf: (id) => this.#certificateUsers.get(id) ?? [],
  });
  readonly #retired: RetiredItems;
  readonly #backends: BackendResources;
  readonly #ports: PortResources;
  readonly #containment: ScopeContainment;
  readonly status: ProgrammingStatus;
  #tableChanged = true;

  readonly #isUsable = (id: ItemId): boolean => this.status.certificateProblem(id) === undefined;

  constructor(options: GatewayConfigOptions) {
    this.#options = options;
    this.#model.routeTracing = options.routeTracing;
    const { gateway, lingerMs } = options;
    this.#retired = new RetiredItems(lingerMs);
    this.#backends = new BackendResources({
      gateway,
      lingerMs,
      model: this.#model,
      store: this.store,
      uses: this.#uses,
      clientCertificate: () => this.#clientCertificate(),
    });
    this.#containment = new ScopeContainment({
      compileProbe: (scope, name, hosts) => this.#compileProbe(scope, { name, hosts }),
      send: (probe) => this.store.set(probe),
      withdraw: (name) => this.store.delete("scope", name),
      onLearned: (scope) => this.#containmentChanged(scope),
      onInexplicable: (scope, replica) => this.status.scopeRefused(replica, scope),
      versionOf: (scope) => this.store.get("scope", scope)?.version,
      guard: (id) => this.#model.get("guard", id),
    });
    this.status = new ProgrammingStatus({
      model: this.#model,
      usersOf: (id) => this.#certificateUsers.get(id) ?? [],
      refusedRules: (host) => this.#containment.refusedOf(host),
      isRefusedBackend: (id) => this.#backends.isRefused(id),
      isRefusedListener: (id) => this.#ports.isRefused(id),
    });
    this.#ports = new PortResources({
      model: this.#model,
      store: this.store,
      uses: this.#uses,
      status: this.status,
      port: { ...options, isUsable: this.#isUsable },
      onUses: () => this.#compileUses(),
    });
    this.store.set(sentinelListener());
    this.#compileTable();
  }

  get isEmpty(): boolean {
    return this.#model.items()[Symbol.iterator]().next().done === true;
  }

  apply(delta: PlanDelta): void {
    const dirty = nothingDirty();
    const changes: { readonly before: PlanItem | undefined; readonly after: PlanItem | undefined }[] = [];
    for (const id of delta.removes) changes.push({ before: this.#model.item(id), after: undefined });
    for (const item of delta.upserts) changes.push({ before: this.#model.item(item.id), after: item });
    for (const { before, after } of changes)
      if (before !== undefined) this.#dependents.touch(before, after, dirty);
    for (const { before, after } of changes) {
      if (before !== undefined) this.#forget(before);
      if (after !== undefined) this.#learn(after);
      else if (before !== undefined) this.#backends.forget(before.id);
    }
    for (const { before, after } of changes)
      if (after !== undefined) this.#dependents.touch(after, before, dirty);
    if (changes.some(({ before, after }) => (before ?? after)?.type === "gateway")) this.#tryAgain(dirty);
    this.#compile(dirty);
    this.status.applied(delta);
  }

  /**
   * An Envoy's ACK or NACK. Those of versions that are no longer current are ignored.
   */
  answered(replica: string, answer: Answer): void {
    const { kind, name, version, problem } = answer;
    if (this.store.get(kind, name)?.version !== version) return;
    const scope = kind === "scope" ? this.#containment.scopeOfProbe(name) : undefined;
    const port = kind === "listener" ? this.#ports.portOfProbe(name) : undefined;
    if (scope !== undefined) this.#containment.answered(scope, replica, answer);
    else if (port !== undefined) this.#ports.probed(port, replica, answer);
    else if (problem === undefined) this.status.acknowledged(replica, answer);
    else this.#refused(replica, answer, problem);
  }

  /** Whether an ACK or NACK belongs to a search for rejected rules, and concerns nothing else. */
  isProbe({ kind, name }: Answer): boolean {
    if (kind === "listener") return this.#ports.portOfProbe(name) !== undefined;
    return kind === "scope" && this.#containment.scopeOfProbe(name) !== undefined;
  }

  /** An Envoy has disconnected: its NACKs are void. */
  replicaLeft(replica: string): void {
    this.#containment.replicaLeft(replica);
    this.#ports.replicaLeft(replica);
    this.status.replicaLeft(replica);
  }

  #refused(replica: string, answer: Answer, problem: string): void {
    const { kind, name, version } = answer;
    switch (kind) {
      case "scope": {
        const scope = this.#scopeOf.get(name);
        const port = scope && this.#model.get("port", scope.port);
        const hosts = scope && port && hostsOfScope(this.#model, port, scope.pattern);
        if (hosts !== undefined) this.#containment.refused(name, { replica, version }, hosts);
        return;
      }
      case "cluster":
      case "endpoints":
        this.#backendRefused(name, version);
        return;
      case "secret": {
        const certificate = this.#secrets.certificateOf(name);
        if (certificate !== undefined) this.status.certificateRefused(certificate);
        return;
      }
      case "extension":
        this.status.tableRefused(replica);
        return;
      case "listener":
        this.#ports.refused(replica, answer, problem);
    }
  }

  #backendRefused(name: string, version: string): void {
    const item = this.#backends.refuse(name, version);
    if (item === undefined) {
      const port = /^(.*)#udp$/.exec(name)?.[1];
      if (port !== undefined) this.status.streamsRefused(port);
      return;
    }
    this.#planAnew([item]);
    this.status.backendChanged(item.id);
  }

  /** Items that did not change in the plan, but must be compiled again. */
  #planAnew(items: readonly PlanItem[]): void {
    const dirty = nothingDirty();
    for (const item of items) {
      this.#dependents.touch(item, undefined, dirty);
      this.#learn(item);
    }
    this.#compile(dirty);
  }

  /** Clusters have another client certificate, or none: tries those again that had a NACK. */
  #tryAgain(dirty: Dirty): void {
    for (const item of this.#backends.refusedItems()) {
      this.#learn(item);
      this.#dependents.touch(item, undefined, dirty);
      this.status.backendChanged(item.id);
    }
  }

  #containmentChanged(name: string): void {
    const scope = this.#scopeOf.get(name);
    if (scope === undefined) return;
    this.#compileScope(scope.port, scope.pattern);
    this.#compileUses();
    const port = this.#model.get("port", scope.port);
    for (const { id } of (port && hostsOfScope(this.#model, port, scope.pattern)) ?? [])
      this.status.hostChanged(id);
  }

  #compileUses(): void {
    for (const id of this.#uses.takeChanged()) this.#backends.compile(id);
  }

  #compileProbe(scope: string, content: ScopeContent): XdsResource | undefined {
    const known = this.#scopeOf.get(scope);
    const port = known && this.#model.get("port", known.port);
    const probe = known && port && compileScope(this.#model, port, known.pattern, content);
    // It is never served, so that it needs nothing.
    return probe === undefined ? undefined : { ...probe.resource, needs: [] };
  }

  /**
   * A guard or its service, for requests that Envoy asks about. An Envoy may serve the plan before
   * this one for a moment, so what has left the plan can be asked for a while.
   */
  asked<T extends "guard" | "backend">(type: T, id: ItemId): Extract<PlanItem, { type: T }> | undefined {
    return this.#model.get(type, id) ?? this.#retired.get(type, id);
  }

  clientCertificate(): CertificateItem | undefined {
    const id = this.#clientCertificate();
    return id === undefined ? undefined : this.#model.get("certificate", id);
  }

  /** Where a port is bound, if one can connect to it. */
  tcpPort(id: ItemId): { readonly address: string; readonly port: number } | undefined {
    return this.#ports.tcpPort(id);
  }

  close(): void {
    this.#retired.close();
    this.#backends.close();
    this.#containment.close();
  }

  #learn(item: PlanItem): void {
    this.#model.set(item.type === "backend" ? this.#backends.servable(item) : item);
    if (item.type === "certificate") {
      this.#secrets.set(item);
      this.status.certificateTouched(item.id);
    }
    if (item.type !== "listener") return;
    for (const certificate of item.tls?.certificates ?? []) {
      const users = this.#certificateUsers.get(certificate) ?? new Set();
      this.#certificateUsers.set(certificate, users.add(item.id));
    }
  }

  #forget(item: PlanItem): void {
    this.#model.delete(item.id);
    this.#retired.add(item);
    if (item.type === "certificate") this.#secrets.delete(item.id);
    if (item.type !== "listener") return;
    for (const certificate of item.tls?.certificates ?? []) {
      const users = this.#certificateUsers.get(certificate);
      users?.delete(item.id);
      if (users?.size === 0) this.#certificateUsers.delete(certificate);
    }
  }

  #compile(dirty: Dirty): void {
    for (const [port, patterns] of dirty.scopes) {
      for (const pattern of patterns) this.#compileScope(port, pattern);
    }
    for (const port of dirty.ports) this.#ports.compile(port);
    for (const id of new Set([...dirty.backends, ...this.#uses.takeChanged()])) this.#backends.compile(id);
    if (this.#tableChanged) this.#compileTable();
  }

  #compileScope(portId: ItemId, pattern: string): void {
    const port = this.#model.get("port", portId);
    const known = this.#scopes.get(portId) ?? new Map<string, KnownScope>();
    this.#scopes.set(portId, known);
    const before = known.get(pattern);
    const scope = port === undefined || !isHttpPort(port) ? undefined : this.#servableScope(port, pattern);
    const name = scope?.resource.name;
    if (before !== undefined && before.name !== name) this.#dropScope(before);
    const isSame = before?.name === name && before?.listener === scope?.listener.id;
    if (name !== undefined && this.#containment.holds(name) && isSame) return;
    const user = { port: portId, pattern };
    this.#uses.set(user, scope?.clusters ?? new Map(), scope?.dependsOn ?? new Set());
    if (scope === undefined || name === undefined) {
      known.delete(pattern);
      if (known.size === 0) this.#scopes.delete(portId);
      return;
    }
    const current = { name, port: portId, pattern, listener: scope.listener.id };
    known.set(pattern, current);
    this.#scopeOf.set(name, current);
    if (this.store.set(scope.resource) || !isSame) this.status.scopeChanged(name, scope.listener.id);
    if (needsTable(pattern) && this.#table.get(name) !== scope.listener.id) {
      this.#table.set(name, scope.listener.id);
      this.#tableChanged = true;
      this.status.tableChanged(scope.listener.id);
    }
  }

  /** Without the rules that Envoy is known to reject. */
  #servableScope(port: PortItem, pattern: string): CompiledScope | undefined {
    const hosts = hostsOfScope(this.#model, port, pattern);
    if (hosts === undefined) return undefined;
    const servable = this.#containment.servable(scopeName(port, pattern), hosts);
    const scope = compileScope(this.#model, port, pattern, { hosts: servable });
    if (scope === undefined || servable === hosts) return scope;
    // A refused rule is served without its guards, but may be served again when they change.
    const guards = hosts.flatMap(({ rules }) => rules.flatMap((rule) => rule.guards ?? []));
    return { ...scope, dependsOn: new Set([...scope.dependsOn, ...guards]) };
  }

  #dropScope({ name }: KnownScope): void {
    this.store.delete("scope", name);
    this.#scopeOf.delete(name);
    this.#containment.forget(name);
    this.status.scopeRemoved(name);
    if (this.#table.delete(name)) this.#tableChanged = true;
  }

  /**
   * A cluster waits for its client certificate: it must never refer to one that does not exist.
   */
  #clientCertificate(): ItemId | undefined {
    const id = this.#model.gateway?.clientCertificate;
    return id !== undefined && this.#isUsable(id) ? id : undefined;
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

function isHttpPort({ protocol }: PortItem): boolean {
  return protocol === "http" || protocol === "tls";
}
