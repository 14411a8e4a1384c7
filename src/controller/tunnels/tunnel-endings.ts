/**
 * Gateways that are being deleted and wait until their tunnels are deleted. A deletion that fails
 * is tried again with backoff, and at once when the credentials change. Meanwhile the Gateway's
 * status and an Event say so. Without any credentials the tunnel is left behind, so that its
 * namespace can be deleted.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../../api/gateway.ts";
import { type Key, partsOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { CloudflareApi } from "../../dataplanes/tunnel/cloudflare/cloudflare-api.ts";
import { backoffMs } from "../../dataplanes/tunnel/cloudflare/retry.ts";
import { type ApiTunnel, classOf, type DesiredTunnel, type Find, tunnelOf } from "./desired-tunnel.ts";
import { endTunnel } from "./end-tunnel.ts";
import { FINALIZER, type TunnelCluster } from "./tunnel-cluster.ts";

export interface TunnelEndingsOptions {
  readonly controllerName: string;
  /** False: this controller may not delete tunnels, and only reports that. */
  readonly isEnabled: boolean;
  readonly find: Find;
  readonly cluster: TunnelCluster;
  readonly onChange: (gateway: Key) => void;
  /** Reports why a Gateway cannot be deleted yet. */
  readonly onStuck: (gateway: Gateway, reason: string, note: string) => void;
  readonly apiOf: (desired: ApiTunnel) => CloudflareApi;
  /** Whether a tunnel is that of the Gateway. */
  readonly isOf: (gateway: Key, tunnel: string) => boolean;
  /** Stops managing the Gateway's tunnel, and returns what it was made from. */
  readonly release: (gateway: Key) => Promise<DesiredTunnel | undefined>;
  readonly again?: { readonly firstDelayMs: number; readonly maxDelayMs: number };
}

interface Ending {
  readonly uid: string | undefined;
  /** Of the desired tunnel that was tried last. */
  signature: string;
  wake: AbortController;
  message: string;
}

const RETRY = { firstDelayMs: 5_000, maxDelayMs: 300_000 };
const GIVE_UP = `To give it up, remove the finalizer ${FINALIZER}`;
const OFF = `the tunnel is not deleted, because this controller runs without tunnels (dataPlane.tunnel.enabled). ${GIVE_UP}`;

export class TunnelEndings {
  readonly #options: TunnelEndingsOptions;
  readonly #finalized: Set<Key> = new Set();
  readonly #endings: Map<Key, Ending> = new Map();

  constructor(options: TunnelEndingsOptions) {
    this.#options = options;
  }

  hasFinalizer(gateway: Key): boolean {
    return this.#finalized.has(gateway);
  }

  isEnding(gateway: Key): boolean {
    return this.#endings.has(gateway);
  }

  messageOf(gateway: Key): string | undefined {
    return this.#endings.get(gateway)?.message;
  }

  notice(key: Key, resource: Resource | undefined): void {
    if (partsOf(key).kind !== "Gateway") return;
    if (resource?.metadata.finalizers?.includes(FINALIZER)) this.#finalized.add(key);
    else this.#finalized.delete(key);
    const ending = this.#endings.get(key);
    if (ending === undefined || ending.uid === resource?.metadata.uid) return;
    this.#endings.delete(key);
    ending.wake.abort();
  }

  /** Something that endings begin or depend on may have changed. */
  refresh(leading: AbortSignal | undefined): void {
    const { find, controllerName } = this.#options;
    if (leading === undefined) return;
    for (const key of this.#finalized) {
      const gateway = find(key) as Gateway | undefined;
      if (gateway?.metadata.deletionTimestamp === undefined) continue;
      if ((classOf(gateway, find)?.spec.controllerName ?? controllerName) !== controllerName) continue;
      const ending = this.#endings.get(key);
      if (!this.#options.isEnabled) this.#options.onStuck(gateway, "TunnelNotDeleted", OFF);
      else if (ending === undefined) void this.#end(key, gateway, leading);
      else if (tunnelOf(gateway, find).signature !== ending.signature) ending.wake.abort();
    }
  }

  async #end(key: Key, gateway: Gateway, leading: AbortSignal): Promise<void> {
    const { again = RETRY, onChange, onStuck, release } = this.#options;
    const message = "the tunnel is being deleted";
    const ending = { uid: gateway.metadata.uid, signature: "", wake: new AbortController(), message };
    this.#endings.set(key, ending);
    onChange(key);
    const known = await release(key);
    for (let attempt = 1; !leading.aborted && this.#endings.get(key) === ending; attempt++) {
      ending.wake = new AbortController();
      const problem = await this.#try(key, gateway, ending, known);
      // The Gateway is about to be deleted, or another finalizer keeps it. It has no pods then.
      if (problem === undefined) return;
      ending.message = `the tunnel is not deleted yet: ${problem}. ${GIVE_UP}`;
      onStuck(gateway, "TunnelNotDeleted", ending.message);
      onChange(key);
      const signal = AbortSignal.any([leading, ending.wake.signal]);
      await sleep(backoffMs(attempt, again), undefined, { signal }).catch(() => {});
      if (!this.#finalized.has(key)) return;
    }
    if (this.#endings.get(key) === ending) this.#endings.delete(key);
  }

  /**
   * Credentials that are gone, with the namespace say, may still be known from when the tunnel was
   * made.
   */
  #try(
    key: Key,
    gateway: Gateway,
    ending: Ending,
    known: DesiredTunnel | undefined,
  ): Promise<string | undefined> {
    const { cluster, onStuck, find, apiOf, isOf } = this.#options;
    const now = tunnelOf(gateway, find);
    ending.signature = now.signature;
    const desired = now.type === "broken" ? known : now;
    const isLost = desired === undefined || desired.type === "broken";
    const tunnel =
      desired?.type === "api" && desired.deletes && "name" in desired.target
        ? { api: apiOf(desired), name: desired.target.name, isOurs: (id: string): boolean => isOf(key, id) }
        : undefined;
    return endTunnel({
      gateway,
      cluster,
      ...(tunnel === undefined ? {} : { tunnel }),
      onLeftBehind: () => {
        if (isLost) onStuck(gateway, "TunnelLeftBehind", LEFT_BEHIND);
      },
    });
  }
}

const LEFT_BEHIND = "there are no credentials to delete the tunnel with: it is left behind";
