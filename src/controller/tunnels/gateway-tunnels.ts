/**
 * The tunnels of Gateways that are served through one. Every replica knows these Gateways. Only the
 * leader creates, configures and deletes tunnels, with one writer at a time for each account and
 * token. The state of a tunnel is a fact about its Gateway's infrastructure, from which the status
 * follows.
 */
import type { Gateway } from "../../api/gateway.ts";
import { type Key, partsOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { CloudflareApi } from "../../dataplanes/tunnel/cloudflare/cloudflare-api.ts";
import {
  ManagedTunnel,
  type ManagedTunnelTiming,
  tunnelAddress,
} from "../../dataplanes/tunnel/cloudflare/managed-tunnel.ts";
import type { Origin } from "../../dataplanes/tunnel/cloudflare/tunnel-configuration.ts";
import type { TunnelState } from "../../dataplanes/tunnel/cloudflare/tunnel-link.ts";
import {
  type TunnelProvider,
  tunnelById,
  tunnelByName,
  tunnelByToken,
} from "../../dataplanes/tunnel/cloudflare/tunnel-provider.ts";
import { GrpcUse } from "../../dataplanes/tunnel/grpc-use.ts";
import type { AddressFact } from "../../infra/addresses.ts";
import type { TunnelCredentials } from "../../infra/objects/manifest.ts";
import { TUNNEL_PORT } from "../../infra/pods/tunnel-pod.ts";
import type { TunnelledGateways } from "../../infra/reconciler.ts";
import type { PlanDelta } from "../../plan/plan.ts";
import {
  type ApiTunnel,
  broken,
  credentialDigest,
  type DesiredTunnel,
  desiredTunnel,
} from "./desired-tunnel.ts";
import type { TunnelCluster } from "./tunnel-cluster.ts";
import { TunnelEndings } from "./tunnel-endings.ts";
import { addressInStatus, tunnelStatus } from "./tunnel-status.ts";

export interface GatewayTunnelsOptions {
  readonly controllerName: string;
  /**
   * False: no Gateway can choose a tunnel. Then deleted Gateways that had one are only reported.
   */
  readonly isEnabled: boolean;
  readonly find: (key: Key) => Resource | undefined;
  readonly cluster: TunnelCluster;
  /** A Gateway's fact or credentials may have changed. */
  readonly onChange: (gateway: Key) => void;
  /** Reports why a Gateway cannot be deleted yet. */
  readonly onStuck: (gateway: Gateway, reason: string, note: string) => void;
  /** Reports rules of the tunnel's configuration that Mergeway has not written. */
  readonly onForeign: (gateway: Gateway, news: { readonly reason: string; readonly note: string }) => void;
  /** Where the API is, if not at Cloudflare. */
  readonly apiUrl?: string;
  readonly timing?: ManagedTunnelTiming;
  readonly log: (level: "info" | "warn" | "debug", message: string) => void;
}

interface Entry {
  readonly desired: DesiredTunnel;
  /** The last desired tunnel that was not broken. */
  readonly sound?: DesiredTunnel | undefined;
  managed?: ManagedTunnel;
  state?: TunnelState | undefined;
  credentials?: TunnelCredentials | undefined;
}

const TAKEN = "another Gateway has this tunnel already; give this one a tunnel of its own";

export class GatewayTunnels implements TunnelledGateways {
  readonly #options: GatewayTunnelsOptions;
  readonly #grpc: GrpcUse = new GrpcUse();
  /** Gateways of the plan, by the item that says so. */
  readonly #served: Map<string, Key> = new Map();
  readonly #entries: Map<Key, Entry> = new Map();
  readonly #endings: TunnelEndings;
  readonly #apis: Map<string, CloudflareApi> = new Map();
  readonly #leaving: Set<Promise<void>> = new Set();
  #leading: AbortController | undefined;
  #stale = false;

  constructor(options: GatewayTunnelsOptions) {
    this.#options = options;
    this.#endings = new TunnelEndings({
      ...options,
      ...(options.timing?.again === undefined ? {} : { again: options.timing.again }),
      apiOf: (desired) => this.#apiOf(desired),
      isOf: (gateway, tunnel) => this.#isOf(gateway, tunnel),
      release: (gateway) => this.#release(gateway),
    });
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
    this.#endings.notice(key, resource);
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
    const ending = this.#endings.messageOf(key);
    const { desired, state } = entry;
    const problem =
      desired.type === "broken" ? { reason: "InvalidCredentials", message: desired.message } : state?.problem;
    const fact = tunnelStatus(gateway, { address: state?.address, problem }, isConnected);
    return ending === undefined ? fact : { ...fact, problem: { reason: "Pending", message: ending } };
  }

  credentials(key: Key): TunnelCredentials | undefined {
    this.#refresh();
    return this.#entries.get(key)?.credentials;
  }

  isEnding(key: Key): boolean {
    return this.#endings.isEnding(key);
  }

  #spoil(): void {
    if (this.#stale) return;
    this.#stale = true;
    setImmediate(() => this.#refresh());
  }

  /**
   * Recomputes the desired tunnels after a change. Every getter calls it first, so that its result
   * is never stale.
   */
  #refresh(): void {
    if (!this.#stale) return;
    this.#stale = false;
    const changed = new Set<Key>();
    const desiredTunnels = this.#desiredTunnels();
    for (const [key, entry] of this.#entries) {
      if (desiredTunnels.has(key)) continue;
      this.#stop(entry);
      this.#entries.delete(key);
      changed.add(key);
    }
    for (const [key, desired] of desiredTunnels) {
      const before = this.#entries.get(key);
      if (before?.desired.signature === desired.signature) continue;
      if (before !== undefined) this.#stop(before);
      // Until more is known the Gateway keeps its address and its pods their token.
      const sound = desired.type === "broken" ? before?.sound : desired;
      this.#entries.set(key, { desired, sound, state: before?.state, credentials: before?.credentials });
      this.#start(key);
      changed.add(key);
    }
    this.#endings.refresh(this.#leading?.signal);
    for (const key of changed) this.#options.onChange(key);
  }

  #desiredTunnels(): ReadonlyMap<Key, DesiredTunnel> {
    const { find, isEnabled } = this.#options;
    if (!isEnabled) return new Map();
    const gateways = [...this.#served.values()].flatMap((key) => {
      const gateway = find(key) as Gateway | undefined;
      return gateway === undefined ? [] : [{ key, gateway }];
    });
    const claims = new Set<string>();
    const desiredTunnels = new Map<Key, DesiredTunnel>();
    for (const { key, gateway } of gateways.sort(olderFirst)) {
      const desired = desiredTunnel(gateway, find);
      if (desired === undefined) continue;
      const taken = desired.type !== "broken" && claims.has(desired.claim);
      desiredTunnels.set(key, taken ? broken(TAKEN) : desired);
      if (desired.type !== "broken") claims.add(desired.claim);
    }
    return desiredTunnels;
  }

  #start(key: Key): void {
    const entry = this.#entries.get(key);
    const gateway = this.#options.find(key) as Gateway | undefined;
    if (this.#leading === undefined || entry === undefined || gateway === undefined) return;
    if (entry.desired.type === "broken" || gateway.metadata.deletionTimestamp !== undefined) return;
    const { cluster, log, timing, onChange, onForeign } = this.#options;
    const provider = this.#providerOf(entry.desired, (id) => this.#isOf(key, id));
    const deletes = entry.desired.type === "api" && entry.desired.deletes;
    entry.managed = new ManagedTunnel({
      ...timing,
      name: `of ${partsOf(key).namespace}/${partsOf(key).name}`,
      log,
      origin: this.#originOf(key),
      provider: {
        ...provider,
        // Add the finalizer before there is a tunnel to delete.
        tunnel: async () => {
          if (this.#endings.hasFinalizer(key) !== deletes) await cluster.setFinalizer(gateway, deletes);
          return provider.tunnel();
        },
      },
      connect: async ({ token, onState }) => {
        const write = async (): Promise<void> => {
          entry.credentials = await cluster.writeToken(gateway, token);
        };
        await write();
        // The readiness of pods shows whether a connector is connected.
        onState({ connections: 0 });
        return { stop: async () => {}, renew: write };
      },
      onState: (state) => {
        entry.state = state;
        onChange(key);
      },
      onForeign: (hosts) => {
        const note = `the tunnel's configuration has rules that Mergeway has not written; they are left alone, and are asked before it for: ${hosts.join(", ")}`;
        onForeign(gateway, { reason: "ForeignRules", note });
      },
    });
  }

  #providerOf(
    desired: Exclude<DesiredTunnel, { type: "broken" }>,
    isOurs: (id: string) => boolean,
  ): TunnelProvider {
    if (desired.type === "token") return tunnelByToken(desired.credential);
    const api = this.#apiOf(desired);
    return "id" in desired.target
      ? tunnelById(api, desired.target.id)
      : tunnelByName(api, desired.target.name, isOurs);
  }

  /** Whether the tunnel is the Gateway's, also from before this controller led. */
  #isOf(key: Key, id: string): boolean {
    const gateway = this.#options.find(key) as Gateway | undefined;
    const known = this.#entries.get(key)?.state?.address ?? (gateway && addressInStatus(gateway));
    return known === tunnelAddress(id);
  }

  #apiOf({ account, credential }: ApiTunnel): CloudflareApi {
    const id = `${account} ${credentialDigest(credential)}`;
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

  /** Stops managing the tunnel of a Gateway that is being deleted. */
  async #release(key: Key): Promise<DesiredTunnel | undefined> {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#stop(entry);
    await Promise.all(this.#leaving);
    return entry?.sound;
  }
}

interface Named {
  readonly key: Key;
  readonly gateway: Gateway;
}

function olderFirst(a: Named, b: Named): number {
  const born = ({ gateway }: Named): string => gateway.metadata.creationTimestamp ?? "";
  return born(a).localeCompare(born(b)) || a.key.localeCompare(b.key);
}
