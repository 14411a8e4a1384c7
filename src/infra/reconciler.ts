/**
 * Makes the infrastructure of each served Gateway what `desiredManifests` says, and reports the
 * result. It runs on every replica to know addresses, and writes only on the leader. For each
 * Gateway there is one write at a time, of the newest desired state.
 */
import type { EndpointSlice, Service } from "../api/core.ts";
import type { Gateway, GatewayClass } from "../api/gateway.ts";
import type { GatewayParameters } from "../api/gateway-parameters.ts";
import { type Key, keyFor, partsOf } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import { effectiveParameters } from "../api/rules/effective-parameters.ts";
import { type AddressFact, addressFact } from "./addresses.ts";
import { desiredManifests } from "./desired.ts";
import { type Found, isMadeFor, nameTaken } from "./name-collisions.ts";
import type { DataPlaneContext, Manifest, ServedPort, TunnelCredentials } from "./objects/manifest.ts";
import { infrastructureName, MANAGED_BY } from "./objects/names.ts";
import { headlessServiceName } from "./objects/services.ts";

/** What the reconciler needs of a cluster. */
export interface InfrastructureCluster {
  /** What has this name now, whoever made it. */
  look(object: ObjectName): Promise<FoundObject | undefined>;
  /**
   * Server-side apply with our field manager: to the object with this uid and no other, or
   * (undefined) to none that is there already.
   */
  apply(manifest: Manifest, uid: string | undefined): Promise<void>;
  remove(object: ObjectName, uid: string): Promise<void>;
  /** Everything that carries our managed-by label, of the kinds that we make. */
  listOwned(): Promise<readonly (ObjectName & { readonly uid: string; readonly gateway: string })[]>;
}

export interface FoundObject extends Found {
  readonly uid: string;
}

export interface ObjectName {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface ReconcilerOptions {
  readonly cluster: InfrastructureCluster;
  readonly context: () => DataPlaneContext;
  readonly find: (key: Key) => Resource | undefined;
  /** Gateways that are served through tunnels; undefined of all others. */
  readonly tunnels?: TunnelledGateways;
  readonly onFact: (gateway: Key, fact: AddressFact | undefined) => void;
  readonly onProblem: (gateway: Key, problem: string) => void;
}

export interface TunnelledGateways {
  /** What is known of a Gateway's tunnel, given whether a connector is connected. */
  fact(gateway: Key, isConnected: boolean): AddressFact | undefined;
  credentials(gateway: Key): TunnelCredentials | undefined;
  /** Its pods must go, because its tunnel does. */
  isEnding(gateway: Key): boolean;
}

const RETRY_MS = 2_000;
/** Between two looks at whether a name is free. */
const TAKEN_MS = 5_000;
const RESYNC_MS = 5 * 60_000;

export class InfrastructureReconciler {
  readonly #options: ReconcilerOptions;
  /** Ports of every Gateway that is served. */
  readonly #served: Map<Key, readonly ServedPort[]> = new Map();
  readonly #applied: Map<Key, ReadonlyMap<string, string>> = new Map();
  /** Why nothing can be made for a Gateway. */
  readonly #taken: Map<Key, NonNullable<AddressFact["problem"]>> = new Map();
  readonly #dirty: Set<Key> = new Set();
  readonly #busy: Set<Key> = new Set();
  readonly #ready: ReadyServices = new ReadyServices();
  #leading = false;
  #resync: NodeJS.Timeout | undefined;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** A Gateway is served on these ports, or (undefined) not at all any more. */
  serve(gateway: Key, ports: readonly ServedPort[] | undefined): void {
    if (ports === undefined) {
      this.#served.delete(gateway);
      this.#options.onFact(gateway, undefined);
    } else {
      this.#served.set(gateway, ports);
      this.#tellAddresses(gateway);
    }
    this.#wake(gateway);
  }

  /** Something changed that the infrastructure of Gateways is made from or seen by. */
  notice(key: Key, resource: Resource | undefined): void {
    const { kind } = partsOf(key);
    if (kind === "Gateway" && this.#served.has(key)) {
      this.#tellAddresses(key);
      this.#wake(key);
    } else if (kind === "GatewayClass" || kind === "GatewayParameters")
      for (const gateway of this.#served.keys()) this.#wake(gateway);
    else if (kind === "Service") this.#noticeService(key, resource as Service | undefined);
    else if (kind === "EndpointSlice" && this.#ready.notice(key, resource as EndpointSlice | undefined)) {
      for (const gateway of this.#served.keys()) this.#tellAddresses(gateway);
    }
  }

  /** Something is known of a Gateway's tunnel that was not before. */
  noticeTunnel(gateway: Key): void {
    if (!this.#served.has(gateway)) return;
    this.#tellAddresses(gateway);
    this.#wake(gateway);
  }

  /**
   * Begins or ceases to write. A new leader first removes the objects of Gateways that are not
   * served any more.
   */
  async lead(leading: boolean): Promise<void> {
    this.#leading = leading;
    clearInterval(this.#resync);
    if (!leading) return;
    await this.#removeOrphans();
    if (!this.#leading) return;
    this.#applyAgain();
    this.#resync = setInterval(() => this.#applyAgain(), RESYNC_MS).unref();
  }

  /** Restores our objects that somebody has changed or deleted. */
  #applyAgain(): void {
    this.#applied.clear();
    for (const gateway of this.#served.keys()) this.#wake(gateway);
  }

  #noticeService(key: Key, service: Service | undefined): void {
    for (const gateway of this.#served.keys()) {
      const found = this.#options.find(gateway) as Gateway | undefined;
      const { namespace, name } = partsOf(key);
      if (found === undefined || found.metadata.namespace !== namespace) continue;
      if (!name.startsWith(infrastructureName(found))) continue;
      this.#tellAddresses(gateway);
      if (service === undefined) {
        this.#applied.delete(gateway);
        this.#wake(gateway);
      }
    }
  }

  #tellAddresses(gateway: Key): void {
    const found = this.#options.find(gateway) as Gateway | undefined;
    if (found === undefined) return;
    const service = (name: string): Service | undefined => {
      const key = keyFor("Service", found.metadata.namespace ?? "", name);
      const named = this.#options.find(key) as Service | undefined;
      return named !== undefined && isMadeFor(found.metadata, named.metadata) ? named : undefined;
    };
    const isReady = (name: string): boolean => this.#ready.isReady(found.metadata.namespace ?? "", name);
    const tunnelled = this.#options.tunnels?.fact(gateway, isReady(headlessServiceName(found)));
    const fact = tunnelled ?? addressFact(found, service, isReady);
    const problem = this.#taken.get(gateway);
    this.#options.onFact(gateway, problem === undefined ? fact : { ...fact, problem });
  }

  #wake(gateway: Key): void {
    if (!this.#leading) return;
    this.#dirty.add(gateway);
    if (!this.#busy.has(gateway)) void this.#work(gateway);
  }

  async #work(gateway: Key): Promise<void> {
    this.#busy.add(gateway);
    try {
      while (this.#dirty.delete(gateway) && this.#leading) await this.#reconcile(gateway);
    } catch (error) {
      this.#options.onProblem(gateway, error instanceof Error ? error.message : String(error));
      setTimeout(() => this.#wake(gateway), RETRY_MS).unref();
    } finally {
      this.#busy.delete(gateway);
    }
  }

  async #reconcile(gateway: Key): Promise<void> {
    const before = this.#applied.get(gateway) ?? new Map<string, string>();
    const wanted = this.#wanted(gateway);
    const changed = wanted.filter((manifest) => before.get(identity(manifest)) !== JSON.stringify(manifest));
    const found = await this.#look(gateway, changed.map(identity));
    if (found === undefined) return;
    const after = new Map(before);
    this.#applied.set(gateway, after);
    for (const manifest of changed) {
      const id = identity(manifest);
      await this.#options.cluster.apply(manifest, found.get(id)?.uid);
      after.set(id, JSON.stringify(manifest));
    }
    const kept = new Set(wanted.map(identity));
    for (const id of before.keys()) {
      if (kept.has(id)) continue;
      const object = await this.#options.cluster.look(named(id));
      if (object !== undefined && isMadeFor(this.#identityOf(gateway), object))
        await this.#options.cluster.remove(named(id), object.uid);
      after.delete(id);
    }
    if (wanted.length === 0) this.#applied.delete(gateway);
  }

  /**
   * What is there of the objects that are to be written; undefined, and told, where some of it is
   * not ours to write.
   */
  async #look(gateway: Key, ids: readonly string[]): Promise<ReadonlyMap<string, FoundObject> | undefined> {
    const found = new Map<string, FoundObject>();
    for (const id of ids) {
      const object = await this.#options.cluster.look(named(id));
      if (object !== undefined) found.set(id, object);
    }
    const own = this.#identityOf(gateway);
    const others = [...found].filter(([, object]) => !isMadeFor(own, object));
    const problem = others.length === 0 ? undefined : nameTaken(others.map(([id]) => named(id)));
    if (problem?.message !== this.#taken.get(gateway)?.message) {
      if (problem === undefined) this.#taken.delete(gateway);
      else {
        this.#taken.set(gateway, problem);
        this.#options.onProblem(gateway, problem.message);
      }
      if (this.#served.has(gateway)) this.#tellAddresses(gateway);
    }
    if (problem === undefined) return found;
    setTimeout(() => this.#wake(gateway), TAKEN_MS).unref();
    return undefined;
  }

  #identityOf(gateway: Key): Gateway["metadata"] {
    return this.#options.find(gateway)?.metadata ?? { name: partsOf(gateway).name };
  }

  #wanted(key: Key): readonly Manifest[] {
    const ports = this.#served.get(key);
    const gateway = this.#options.find(key) as Gateway | undefined;
    const { find, tunnels } = this.#options;
    if (ports === undefined || gateway === undefined || tunnels?.isEnding(key)) return [];
    const gatewayClass = find(keyFor("GatewayClass", "", gateway.spec.gatewayClassName)) as
      | GatewayClass
      | undefined;
    const parameters = effectiveParameters(
      gateway,
      gatewayClass,
      (at) => find(at) as GatewayParameters | undefined,
    );
    const sorted = [...ports].sort((a, b) => a.port - b.port || a.transport.localeCompare(b.transport));
    const tunnel = tunnels?.credentials(key);
    const request = { gateway, parameters, ports: sorted, ...(tunnel === undefined ? {} : { tunnel }) };
    return desiredManifests(request, this.#options.context());
  }

  /**
   * Removes infrastructure of Gateways that were deleted while no controller led, or that belong to
   * another controller now.
   */
  async #removeOrphans(): Promise<void> {
    for (const { gateway, uid, ...object } of await this.#options.cluster.listOwned()) {
      const key = keyFor("Gateway", object.namespace, gateway);
      if (!this.#served.has(key)) await this.#options.cluster.remove(object, uid);
    }
  }
}

function identity({ apiVersion, kind, metadata }: Manifest): string {
  return `${apiVersion}|${kind}|${metadata.namespace}|${metadata.name}`;
}

function named(id: string): ObjectName {
  const [apiVersion = "", kind = "", namespace = "", name = ""] = id.split("|");
  return { apiVersion, kind, namespace, name };
}

/** Which of our Services have a ready pod. Slices of other Services are ignored. */
class ReadyServices {
  readonly #slices: Map<Key, { readonly service: string; readonly ready: boolean }> = new Map();
  readonly #counts: Map<string, number> = new Map();

  /** Whether the readiness of a Service has changed. */
  notice(key: Key, slice: EndpointSlice | undefined): boolean {
    const before = this.#slices.get(key);
    const labels = slice?.metadata.labels ?? {};
    const isOurs = labels["app.kubernetes.io/managed-by"] === MANAGED_BY;
    if (!isOurs && before === undefined) return false;
    const service = `${slice?.metadata.namespace}/${labels["kubernetes.io/service-name"]}`;
    const ready = (slice?.endpoints ?? []).some(({ conditions }) => conditions?.ready !== false);
    if (before?.ready) this.#count(before.service, -1);
    if (isOurs && ready) this.#count(service, 1);
    if (isOurs) this.#slices.set(key, { service, ready });
    else this.#slices.delete(key);
    return (before?.ready ?? false) !== (isOurs && ready);
  }

  isReady(namespace: string, service: string): boolean {
    return (this.#counts.get(`${namespace}/${service}`) ?? 0) > 0;
  }

  #count(service: string, by: number): void {
    const count = (this.#counts.get(service) ?? 0) + by;
    if (count === 0) this.#counts.delete(service);
    else this.#counts.set(service, count);
  }
}
