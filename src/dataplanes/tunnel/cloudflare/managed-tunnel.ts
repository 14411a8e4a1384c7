/**
 * One tunnel that we make, configure and have a connector for. Its steps:
 *
 *   find or create → configure → token → connector
 *
 * Where a step fails, it begins anew after a wait that grows. Failures never end it: credentials
 * may be mended at any time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { failureOf, type TunnelProblem } from "./api-failure.ts";
import type { ConfigurationResult } from "./cloudflare-api.ts";
import type { ConnectorState } from "./connector.ts";
import type { Credential } from "./credential.ts";
import { backoffMs } from "./retry.ts";
import type { Origin } from "./tunnel-configuration.ts";
import type { TunnelState } from "./tunnel-link.ts";
import type { TunnelProvider } from "./tunnel-provider.ts";

export interface ManagedTunnelTiming {
  /** Between two tries after a failure. */
  readonly again?: { readonly firstDelayMs: number; readonly maxDelayMs: number };
  /** Between two looks at a configuration that others can change, too. */
  readonly recheckMs?: number;
  readonly graceMs?: number;
}

export interface ManagedTunnelOptions extends ManagedTunnelTiming {
  /** For the log. */
  readonly name: string;
  readonly provider: TunnelProvider;
  readonly origin: Origin;
  readonly connect: (connection: ConnectionRequest) => RunningConnector | Promise<RunningConnector>;
  readonly onState: (state: TunnelState) => void;
  /** Rules of somebody else's come before ours, or others than before; what they are for. */
  readonly onForeign?: (hosts: readonly string[]) => void;
  readonly log: (level: "info" | "warn" | "debug", message: string) => void;
}

export interface ConnectionRequest {
  readonly tunnel: string;
  readonly token: Credential;
  readonly onState: (state: ConnectorState) => void;
}

export interface RunningConnector {
  stop(graceMs: number): Promise<void>;
  /** Called at intervals: restores what somebody has deleted. */
  renew?(): Promise<void>;
}

const DEFAULT_AGAIN = { firstDelayMs: 5_000, maxDelayMs: 300_000 };
const DEFAULT_RECHECK_MS = 300_000;
const DOMAIN = "cfargotunnel.com";

export class ManagedTunnel {
  readonly #options: ManagedTunnelOptions;
  readonly #stopping: AbortController = new AbortController();
  readonly #done: Promise<void>;
  #origin: Origin;
  #wake: AbortController = new AbortController();
  #connector: { readonly tunnel: string; readonly running: RunningConnector } | undefined;
  #connected: ConnectorState | undefined;
  #address: string | undefined;
  #problem: TunnelProblem | undefined;
  #foreign = "";
  state: TunnelState | undefined;

  constructor(options: ManagedTunnelOptions) {
    this.#options = options;
    this.#origin = options.origin;
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
    await this.#done;
    await this.#disconnect();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { provider, name, log, again = DEFAULT_AGAIN, recheckMs = DEFAULT_RECHECK_MS } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt++) {
      this.#wake = new AbortController();
      let wait = recheckMs;
      try {
        const tunnel = await provider.tunnel();
        this.#address = tunnelAddress(tunnel);
        const result = await provider.configure(tunnel, this.#origin);
        if (result !== undefined) this.#tellResult(result);
        await this.#connect(tunnel);
        this.#problem = undefined;
        attempt = 0;
      } catch (error) {
        this.#problem = problemOf(error);
        wait = backoffMs(attempt, again);
        if (!signal.aborted) log("warn", `tunnel ${name}: ${this.#problem.message}`);
      }
      this.#change();
      await this.#sleep(wait);
    }
  }

  /** A tunnel that was deleted and made again has another token. */
  async #connect(tunnel: string): Promise<void> {
    if (this.#connector?.tunnel === tunnel) return this.#connector.running.renew?.();
    const { provider, connect } = this.#options;
    const token = await provider.token(tunnel);
    await this.#disconnect();
    if (this.#stopping.signal.aborted) return;
    const onState = (state: ConnectorState): void => {
      this.#connected = state;
      this.#change();
    };
    this.#connector = { tunnel, running: await connect({ tunnel, token, onState }) };
  }

  async #disconnect(): Promise<void> {
    const before = this.#connector;
    this.#connector = undefined;
    await before?.running.stop(this.#options.graceMs ?? 10_000);
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
    this.#options.onState(this.state);
  }

  #tellResult({ written, version, foreign }: ConfigurationResult): void {
    const { log, name } = this.#options;
    if (written) log("info", `tunnel ${name}: configuration version ${version} written`);
    const hosts = foreign.map(({ hostname }) => hostname ?? "any hostname");
    const said = hosts.join(", ");
    if (said === this.#foreign) return;
    this.#foreign = said;
    if (foreign.length === 0) return;
    log("warn", `tunnel ${name}: rules that Mergeway has not written come before it: ${said}`);
    this.#options.onForeign?.(hosts);
  }
}

export function tunnelAddress(tunnel: string): string {
  return `${tunnel}.${DOMAIN}`;
}

export function problemOf(error: unknown): TunnelProblem {
  return failureOf(error, "serving through the tunnel").problem;
}
