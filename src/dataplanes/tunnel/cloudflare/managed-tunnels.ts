/** Tunnels of one account with connectors beside us: one per Gateway, found again by its name. */
import type { TunnelProblem } from "./api-failure.ts";
import type { CloudflareApi } from "./cloudflare-api.ts";
import { type ConnectorOptions, ConnectorProcess } from "./connector.ts";
import { ManagedTunnel, type ManagedTunnelTiming, problemOf } from "./managed-tunnel.ts";
import type { Origin } from "./tunnel-configuration.ts";
import type { TunnelLink, TunnelState } from "./tunnel-link.ts";
import { tunnelByName } from "./tunnel-provider.ts";

export interface ManagedTunnelsOptions extends ManagedTunnelTiming {
  readonly api: CloudflareApi;
  /** The name of a Gateway's tunnel in the account; never of two Gateways the same. */
  readonly nameOf: (gateway: string) => string;
  readonly connector: Omit<ConnectorOptions, "token" | "onState" | "onLine">;
  readonly log: (level: "info" | "warn" | "debug", message: string) => void;
}

export class ManagedTunnels implements TunnelLink {
  readonly #options: ManagedTunnelsOptions;
  readonly #tunnels: Map<string, ManagedTunnel> = new Map();
  /** Ways that have been given up and are still ending. */
  readonly #leaving: Set<Promise<void>> = new Set();
  #handler: ((gateway: string, state: TunnelState) => void) | undefined;

  constructor(options: ManagedTunnelsOptions) {
    this.#options = options;
  }

  onState(handler: (gateway: string, state: TunnelState) => void): void {
    this.#handler = handler;
    for (const [gateway, { state }] of this.#tunnels) if (state !== undefined) handler(gateway, state);
  }

  lead(gateway: string, origin: Origin): void {
    const present = this.#tunnels.get(gateway);
    if (present !== undefined) {
      present.lead(origin);
      return;
    }
    const { api, nameOf, connector, ...timing } = this.#options;
    const name = nameOf(gateway);
    const tunnel = new ManagedTunnel({
      ...timing,
      name,
      origin,
      provider: tunnelByName(api, name),
      connect: ({ token, onState }) =>
        new ConnectorProcess({
          ...connector,
          token,
          onState,
          onLine: (line) => timing.log("debug", `cloudflared: ${line}`),
        }),
      onState: (state) => this.#handler?.(gateway, state),
    });
    this.#tunnels.set(gateway, tunnel);
  }

  release(gateway: string): void {
    const tunnel = this.#tunnels.get(gateway);
    if (tunnel === undefined) return;
    this.#tunnels.delete(gateway);
    const ending = tunnel.stop().finally(() => this.#leaving.delete(ending));
    this.#leaving.add(ending);
  }

  /** The Gateway is gone: so is its tunnel, with name and address. */
  async delete(gateway: string): Promise<TunnelProblem | undefined> {
    this.release(gateway);
    await Promise.all(this.#leaving);
    const { api, nameOf } = this.#options;
    try {
      const tunnel = await api.find(nameOf(gateway));
      if (tunnel !== undefined) await api.delete(tunnel.id);
      return undefined;
    } catch (error) {
      return problemOf(error);
    }
  }

  async close(): Promise<void> {
    for (const gateway of [...this.#tunnels.keys()]) this.release(gateway);
    await Promise.all(this.#leaving);
  }
}
