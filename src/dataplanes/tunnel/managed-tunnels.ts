/**
 * Tunnels that we make, configure and run connectors for: one per Gateway, found again by its name. Each goes its own way through
 *   find or create → configure → token → connector,
 * beginning anew (after a wait that grows) where something fails. Failures never end it: credentials may be mended at any time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { failureOf, type TunnelProblem } from "./api-failure.ts";
import type { CloudflareApi, ConfigurationResult } from "./cloudflare-api.ts";
import { Connector, type ConnectorOptions, type ConnectorState } from "./connector.ts";
import { backoffMs } from "./retry.ts";
import type { Origin } from "./tunnel-configuration.ts";
import type { TunnelLink, TunnelState } from "./tunnel-link.ts";

export interface ManagedTunnelsOptions {
  readonly api: CloudflareApi;
  /** The name of a Gateway's tunnel in the account; never of two Gateways the same. */
  readonly nameOf: (gateway: string) => string;
  readonly connector: Omit<ConnectorOptions, "token" | "onState" | "onLine">;
  /** Between two tries after a failure. */
  readonly again?: { readonly firstDelayMs: number; readonly maxDelayMs: number };
  /** Between two looks at a configuration that others can change, too. */
  readonly recheckMs?: number;
  readonly graceMs?: number;
  readonly log: (level: "info" | "warn" | "debug", message: string) => void;
}

const DEFAULT_AGAIN = { firstDelayMs: 5_000, maxDelayMs: 300_000 };
const DEFAULT_RECHECK_MS = 300_000;
const DOMAIN = "cfargotunnel.com";

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
    const name = this.#options.nameOf(gateway);
    const tunnel = new ManagedTunnel(name, origin, this.#options, (state) => this.#handler?.(gateway, state));
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

class ManagedTunnel {
  readonly #name: string;
  readonly #options: ManagedTunnelsOptions;
  readonly #tell: (state: TunnelState) => void;
  readonly #stopping: AbortController = new AbortController();
  readonly #done: Promise<void>;
  #origin: Origin;
  #wake: AbortController = new AbortController();
  #connector: Connector | undefined;
  #connected: ConnectorState | undefined;
  #address: string | undefined;
  #problem: TunnelProblem | undefined;
  state: TunnelState | undefined;

  constructor(
    name: string,
    origin: Origin,
    options: ManagedTunnelsOptions,
    tell: (state: TunnelState) => void,
  ) {
    this.#name = name;
    this.#origin = origin;
    this.#options = options;
    this.#tell = tell;
    this.#done = this.#run();
  }

  lead(origin: Origin): void {
    const { address, port, http2 } = this.#origin;
    if (origin.address === address && origin.port === port && origin.http2 === http2) return;
    this.#origin = origin;
    this.#wake.abort();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake.abort();
    await Promise.all([this.#done, this.#connector?.stop(this.#options.graceMs ?? 10_000)]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { api, log, again = DEFAULT_AGAIN, recheckMs = DEFAULT_RECHECK_MS } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt++) {
      this.#wake = new AbortController();
      let wait = recheckMs;
      try {
        const tunnel = await api.findOrCreate(this.#name);
        this.#address = `${tunnel.id}.${DOMAIN}`;
        const result = await api.configure(tunnel.id, this.#origin);
        this.#logResult(result);
        if (this.#connector === undefined) await this.#connect(tunnel.id);
        this.#problem = undefined;
        attempt = 0;
      } catch (error) {
        this.#problem = problemOf(error);
        wait = backoffMs(attempt, again);
        if (!signal.aborted) log("warn", `tunnel ${this.#name}: ${this.#problem.message}`);
      }
      this.#change();
      await this.#sleep(wait);
    }
  }

  async #connect(id: string): Promise<void> {
    const { api, connector, log } = this.#options;
    const token = await api.token(id);
    if (this.#stopping.signal.aborted) return;
    this.#connector = new Connector({
      ...connector,
      token,
      onState: (state) => {
        this.#connected = state;
        this.#change();
      },
      onLine: (line) => log("debug", `cloudflared: ${line}`),
    });
  }

  /** No longer than until the origin changes. */
  async #sleep(wait: number): Promise<void> {
    const signal = AbortSignal.any([this.#stopping.signal, this.#wake.signal]);
    await sleep(wait, undefined, { signal }).catch(() => {});
  }

  #change(): void {
    if (this.#stopping.signal.aborted) return;
    // Before the connector has said anything there is nothing to say, unless something is wrong.
    const problem = this.#problem ?? this.#connected?.problem;
    if (problem === undefined && this.#connected === undefined) return;
    this.state = {
      ...(this.#address === undefined ? {} : { address: this.#address }),
      connections: this.#connected?.connections ?? 0,
      ...(problem === undefined ? {} : { problem }),
    };
    this.#tell(this.state);
  }

  #logResult({ written, version, foreign }: ConfigurationResult): void {
    const { log } = this.#options;
    if (written) log("info", `tunnel ${this.#name}: configuration version ${version} written`);
    if (foreign.length === 0) return;
    const hosts = foreign.map(({ hostname }) => hostname ?? "any hostname").join(", ");
    log("warn", `tunnel ${this.#name}: rules that Mergeway has not written come before it: ${hosts}`);
  }
}

function problemOf(error: unknown): TunnelProblem {
  return failureOf(error, "serving through the tunnel").problem;
}
