/**
 * The tunnels of Gateways that are served through one. Every replica knows which Gateways these are; the leader alone makes, configures and deletes, one writer at a time for
 * each account and token. What becomes of a tunnel is a fact about its Gateway's infrastructure, and reaches statuses as such.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../../api/gateway.ts";
import { type Key, partsOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { CloudflareApi } from "../../dataplanes/tunnel/cloudflare-api.ts";
import { GrpcUse } from "../../dataplanes/tunnel/grpc-use.ts";
import { ManagedTunnel, type ManagedTunnelTiming } from "../../dataplanes/tunnel/managed-tunnel.ts";
import { backoffMs } from "../../dataplanes/tunnel/retry.ts";
import type { Origin } from "../../dataplanes/tunnel/tunnel-configuration.ts";
import type { TunnelState } from "../../dataplanes/tunnel/tunnel-link.ts";
import {
  type TunnelProvider,
  tunnelById,
  tunnelByName,
  tunnelByToken,
} from "../../dataplanes/tunnel/tunnel-provider.ts";
import type { AddressFact } from "../../infra/addresses.ts";
import type { TunnelCredentials } from "../../infra/manifest.ts";
import { TUNNEL_PORT } from "../../infra/pods/tunnel-pod.ts";
import type { TunnelledGateways } from "../../infra/reconciler.ts";
import type { PlanDelta } from "../../plan/plan.ts";
import { endTunnel } from "./end-tunnel.ts";
import { FINALIZER, type TunnelCluster } from "./tunnel-cluster.ts";
import { tunnelStatus } from "./tunnel-status.ts";
import {
  type ApiWish,
  broken,
  classOf,
  digestOf,
  type TunnelWish,
  tunnelOf,
  tunnelWish,
} from "./tunnel-wish.ts";

export interface GatewayTunnelsOptions {
  readonly controllerName: string;
  readonly find: (key: Key) => Resource | undefined;
  readonly cluster: TunnelCluster;
  /** A Gateway's fact or credentials may have changed. */
  readonly onChange: (gateway: Key) => void;
  /** For whoever waits for a Gateway to be gone. */
  readonly onStuck: (gateway: Gateway, reason: string, note: string) => void;
  /** Where the API is, if not at Cloudflare. */
  readonly apiUrl?: string;
  readonly timing?: ManagedTunnelTiming;
  readonly log: (level: "info" | "warn" | "debug", message: string) => void;
}

interface Entry {
  readonly wish: TunnelWish;
  /** The last wish that was not broken. */
  readonly sound?: TunnelWish | undefined;
  managed?: ManagedTunnel;
  state?: TunnelState | undefined;
  credentials?: TunnelCredentials | undefined;
}

interface Ending {
  wake: AbortController;
  message: string;
}

const RETRY = { firstDelayMs: 5_000, maxDelayMs: 300_000 };
const TAKEN = "another Gateway has this tunnel already; give this one a tunnel of its own";

export class GatewayTunnels implements TunnelledGateways {
  readonly #options: GatewayTunnelsOptions;
  readonly #grpc: GrpcUse = new GrpcUse();
  /** Gateways of the plan, by the item that says so. */
  readonly #served: Map<string, Key> = new Map();
  readonly #entries: Map<Key, Entry> = new Map();
  /** Gateways that bear our finalizer. */
  readonly #finalized: Set<Key> = new Set();
  readonly #endings: Map<Key, Ending> = new Map();
  readonly #apis: Map<string, CloudflareApi> = new Map();
  readonly #leaving: Set<Promise<void>> = new Set();
  #leading: AbortController | undefined;
  #stale = false;

  constructor(options: GatewayTunnelsOptions) {
    this.#options = options;
  }

  /** Which Gateways are served, and which of them with gRPC. */
  follow(delta: PlanDelta): void {
    for (const id of delta.removes) if (this.#served.delete(id)) this.#spoil();
    for (const item of delta.upserts) {
      if (item.type !== "gateway" || this.#served.has(item.id)) continue;
      this.#served.set(item.id, `Gateway/${item.gateway}`);
      this.#spoil();
    }
    for (const gateway of this.#grpc.apply(delta)) {
      const key: Key = `Gateway/${gateway}`;
      this.#entries.get(key)?.managed?.lead(this.#originOf(key));
    }
  }

  notice(key: Key, resource: Resource | undefined): void {
    const { kind } = partsOf(key);
    if (kind === "Gateway") {
      if (resource?.metadata.finalizers?.includes(FINALIZER)) this.#finalized.add(key);
      else this.#finalized.delete(key);
    }
    if (kind === "Gateway" || kind === "GatewayClass" || kind === "GatewayParameters" || kind === "Secret")
      this.#spoil();
  }

  async lead(leading: boolean): Promise<void> {
    this.#leading?.abort();
    this.#leading = leading ? new AbortController() : undefined;
    this.#apis.clear();
    if (!leading) for (const entry of this.#entries.values()) this.#stop(entry);
    await Promise.all(this.#leaving);
    if (!leading) return;
    for (const key of this.#entries.keys()) this.#start(key);
    this.#spoil();
  }

  fact(key: Key, isConnected: boolean): AddressFact | undefined {
    this.#refresh();
    const gateway = this.#options.find(key) as Gateway | undefined;
    const entry = this.#entries.get(key);
    if (gateway === undefined || entry === undefined) return undefined;
    const ending = this.#endings.get(key)?.message;
    if (ending !== undefined) return { addresses: [], problem: { reason: "Pending", message: ending } };
    const { wish, state } = entry;
    const problem =
      wish.type === "broken" ? { reason: "InvalidCredentials", message: wish.message } : state?.problem;
    return tunnelStatus(gateway, { address: state?.address, problem }, isConnected);
  }

  credentials(key: Key): TunnelCredentials | undefined {
    this.#refresh();
    return this.#entries.get(key)?.credentials;
  }

  isEnding(key: Key): boolean {
    return this.#endings.has(key);
  }

  #spoil(): void {
    if (this.#stale) return;
    this.#stale = true;
    setImmediate(() => this.#refresh());
  }

  /** Whatever asks is answered by what is known now, not by what was known when the last change came. */
  #refresh(): void {
    if (!this.#stale) return;
    this.#stale = false;
    const changed = new Set<Key>();
    const wishes = this.#wishes();
    for (const [key, entry] of this.#entries) {
      if (wishes.has(key)) continue;
      this.#stop(entry);
      this.#entries.delete(key);
      changed.add(key);
    }
    for (const [key, wish] of wishes) {
      const before = this.#entries.get(key);
      if (before?.wish.signature === wish.signature) continue;
      if (before !== undefined) this.#stop(before);
      // Until more is known the Gateway keeps its address and its pods their token.
      const sound = wish.type === "broken" ? before?.sound : wish;
      this.#entries.set(key, { wish, sound, state: before?.state, credentials: before?.credentials });
      this.#start(key);
      changed.add(key);
    }
    this.#endAll();
    for (const key of changed) this.#options.onChange(key);
  }

  #wishes(): ReadonlyMap<Key, TunnelWish> {
    const { find } = this.#options;
    const gateways = [...this.#served.values()].flatMap((key) => {
      const gateway = find(key) as Gateway | undefined;
      return gateway === undefined ? [] : [{ key, gateway }];
    });
    const claims = new Set<string>();
    const wishes = new Map<Key, TunnelWish>();
    for (const { key, gateway } of gateways.sort(olderFirst)) {
      const wish = tunnelWish(gateway, find);
      if (wish === undefined) continue;
      const taken = wish.type !== "broken" && claims.has(wish.claim);
      wishes.set(key, taken ? broken(TAKEN) : wish);
      if (wish.type !== "broken") claims.add(wish.claim);
    }
    return wishes;
  }

  #start(key: Key): void {
    const entry = this.#entries.get(key);
    const gateway = this.#options.find(key) as Gateway | undefined;
    if (this.#leading === undefined || entry === undefined || gateway === undefined) return;
    if (entry.wish.type === "broken" || gateway.metadata.deletionTimestamp !== undefined) return;
    const { cluster, log, timing, onChange } = this.#options;
    const provider = this.#providerOf(entry.wish);
    const deletes = entry.wish.type === "api" && entry.wish.deletes;
    entry.managed = new ManagedTunnel({
      ...timing,
      name: `of ${partsOf(key).namespace}/${partsOf(key).name}`,
      log,
      origin: this.#originOf(key),
      provider: {
        ...provider,
        // Before there is a tunnel that somebody would have to delete.
        tunnel: async () => {
          if (this.#finalized.has(key) !== deletes) await cluster.setFinalizer(gateway, deletes);
          return provider.tunnel();
        },
      },
      connect: async ({ token, onState }) => {
        const write = async (): Promise<void> => {
          entry.credentials = await cluster.writeToken(gateway, token);
        };
        await write();
        // Whether a connector is connected is told by the readiness of pods.
        onState({ connections: 0 });
        return { stop: async () => {}, renew: write };
      },
      onState: (state) => {
        entry.state = state;
        onChange(key);
      },
    });
  }

  #providerOf(wish: Exclude<TunnelWish, { type: "broken" }>): TunnelProvider {
    if (wish.type === "token") return tunnelByToken(wish.credential);
    const api = this.#apiOf(wish);
    return "id" in wish.target ? tunnelById(api, wish.target.id) : tunnelByName(api, wish.target.name);
  }

  #apiOf({ account, credential }: ApiWish): CloudflareApi {
    const id = `${account} ${digestOf(credential)}`;
    const known = this.#apis.get(id);
    if (known !== undefined) return known;
    const { apiUrl } = this.#options;
    const api = new CloudflareApi({
      account,
      token: credential,
      signal: this.#leading?.signal ?? AbortSignal.abort(),
      ...(apiUrl === undefined ? {} : { baseUrl: apiUrl }),
    });
    this.#apis.set(id, api);
    return api;
  }

  #stop(entry: Entry): void {
    const { managed } = entry;
    delete entry.managed;
    if (managed === undefined) return;
    const ending = managed.stop().finally(() => this.#leaving.delete(ending));
    this.#leaving.add(ending);
  }

  #originOf(key: Key): Origin {
    const { namespace, name } = partsOf(key);
    const http2 = this.#grpc.usedBy(`${namespace}/${name}`);
    return { address: "127.0.0.1", port: http2 ? TUNNEL_PORT + 1 : TUNNEL_PORT, http2 };
  }

  /** Gateways that are being deleted and wait for us; what was waiting for better credentials looks again. */
  #endAll(): void {
    for (const { wake } of this.#endings.values()) wake.abort();
    const { find, controllerName } = this.#options;
    for (const key of this.#finalized) {
      const gateway = find(key) as Gateway | undefined;
      if (gateway?.metadata.deletionTimestamp === undefined || this.#endings.has(key)) continue;
      const isOthers = (classOf(gateway, find)?.spec.controllerName ?? controllerName) !== controllerName;
      if (!isOthers && this.#leading !== undefined) void this.#end(key, gateway, this.#leading.signal);
    }
  }

  async #end(key: Key, gateway: Gateway, leading: AbortSignal): Promise<void> {
    const ending: Ending = { wake: new AbortController(), message: "the tunnel is being deleted" };
    this.#endings.set(key, ending);
    const known = this.#entries.get(key);
    if (known !== undefined) this.#stop(known);
    this.#options.onChange(key);
    await Promise.all(this.#leaving);
    for (let attempt = 1; !leading.aborted; attempt++) {
      ending.wake = new AbortController();
      const problem = await this.#tryToEnd(gateway, known?.sound);
      if (problem === undefined) break;
      ending.message = `the tunnel is not deleted yet: ${problem}. To give it up, remove the finalizer ${FINALIZER}`;
      this.#options.onStuck(gateway, "TunnelNotDeleted", ending.message);
      this.#options.onChange(key);
      const signal = AbortSignal.any([leading, ending.wake.signal]);
      await sleep(backoffMs(attempt, this.#options.timing?.again ?? RETRY), undefined, { signal }).catch(
        () => {},
      );
      if (find(this.#options, key)?.metadata.uid !== gateway.metadata.uid || !this.#finalized.has(key)) break;
    }
    this.#endings.delete(key);
  }

  /** Credentials that are gone with the namespace, say, may still be known from when the tunnel was made. */
  #tryToEnd(gateway: Gateway, known: TunnelWish | undefined): Promise<string | undefined> {
    const { cluster, onStuck, find: findAny } = this.#options;
    const now = tunnelOf(gateway, findAny);
    const wish = now.type === "broken" ? known : now;
    const api = wish?.type === "api" ? this.#apiOf(wish) : undefined;
    return endTunnel({
      gateway,
      cluster,
      ...(wish?.type === "api" && wish.deletes && "name" in wish.target && api !== undefined
        ? { tunnel: { api, name: wish.target.name } }
        : {}),
      onLeftBehind: () => {
        if (wish === undefined || wish.type === "broken")
          onStuck(
            gateway,
            "TunnelLeftBehind",
            "there are no credentials to delete the tunnel with: it is left behind",
          );
      },
    });
  }
}

function find({ find: findAny }: GatewayTunnelsOptions, key: Key): Gateway | undefined {
  return findAny(key) as Gateway | undefined;
}

interface Named {
  readonly key: Key;
  readonly gateway: Gateway;
}

function olderFirst(a: Named, b: Named): number {
  const born = ({ gateway }: Named): string => gateway.metadata.creationTimestamp ?? "";
  return born(a).localeCompare(born(b)) || a.key.localeCompare(b.key);
}
