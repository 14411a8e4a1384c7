/**
 * The part of the Cloudflare API that tunnels need, over the official package: few calls, retried
 * within bounds, failures as `ApiFailure`.
 */
import Cloudflare from "cloudflare";
import { ApiFailure, failureOf, judgeApiError } from "./api-failure.ts";
import { Credential } from "./credential.ts";
import { type CallRetries, DEFAULT_RETRY, retrying } from "./retry.ts";
import {
  desiredConfiguration,
  type IngressRule,
  type Origin,
  type TunnelConfiguration,
} from "./tunnel-configuration.ts";

export interface CloudflareOptions {
  readonly account: string;
  readonly token: Credential;
  /** Where the API is, if not at Cloudflare. */
  readonly baseUrl?: string;
  readonly retry?: Partial<CallRetries>;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

export interface Tunnel {
  readonly id: string;
  readonly name: string;
}

export interface ConfigurationResult {
  readonly written: boolean;
  readonly version: number;
  /** Rules of others that come before ours. */
  readonly foreign: readonly IngressRule[];
}

export interface TunnelHealth {
  readonly status: "healthy" | "degraded" | "down" | "inactive";
  readonly connections: number;
}

export class CloudflareApi {
  readonly #client: Cloudflare;
  readonly #account: string;
  readonly #policy: CallRetries;
  readonly #signal: AbortSignal;
  /** Updates carry no precondition, so read, compare and write of one process never overlap. */
  #writes: Promise<unknown> = Promise.resolve();

  constructor({ account, token, baseUrl, retry, timeoutMs = 20_000, signal }: CloudflareOptions) {
    this.#client = new Cloudflare({
      apiToken: token.reveal(),
      // Nothing of the environment takes part, and nothing is logged.
      apiKey: null,
      apiEmail: null,
      userServiceKey: null,
      baseURL: baseUrl ?? "https://api.cloudflare.com/client/v4",
      logLevel: "off",
      maxRetries: 0,
      timeout: timeoutMs,
    });
    this.#account = account;
    this.#policy = { ...DEFAULT_RETRY, ...retry };
    this.#signal = signal;
  }

  /** The tunnel of that name, made if there is none. */
  findOrCreate(name: string): Promise<Tunnel> {
    return this.#exclusively(async () => {
      const found = await this.find(name);
      if (found !== undefined) return found;
      try {
        return await this.#call("creating the tunnel", (options) =>
          this.#tunnels.create({ account_id: this.#account, name, config_src: "cloudflare" }, options),
        ).then(tunnelOf);
      } catch (error) {
        // A try that seemed to fail may have made it, and another writer may have been faster.
        if (!(error instanceof ApiFailure) || error.status === 403 || error.status === 401) throw error;
        const made = await this.find(name);
        if (made === undefined) throw error;
        return made;
      }
    });
  }

  async find(name: string): Promise<Tunnel | undefined> {
    const page = await this.#call("looking for the tunnel", (options) =>
      this.#tunnels.list({ account_id: this.#account, name, is_deleted: false }, options),
    );
    for (const tunnel of page.result) if (tunnel.name === name && !tunnel.deleted_at) return tunnelOf(tunnel);
    return undefined;
  }

  async token(tunnel: string): Promise<Credential> {
    const token = await this.#call("getting the tunnel's token", (options) =>
      this.#tunnels.token.get(tunnel, { account_id: this.#account }, options),
    );
    return new Credential(String(token));
  }

  /** Leads the tunnel to our proxy; writes only what differs. */
  configure(tunnel: string, origin: Origin): Promise<ConfigurationResult> {
    return this.#exclusively(async () => {
      const current = await this.#call("reading the tunnel's configuration", (options) =>
        this.#tunnels.configurations.get(tunnel, { account_id: this.#account }, options),
      );
      if (current?.source === "local") throw locallyConfigured();
      const config = (current?.config ?? undefined) as TunnelConfiguration | undefined;
      const desired = desiredConfiguration(config, origin);
      if ("foreignCatchAll" in desired) throw foreignCatchAll();
      const { configuration, differs, foreign } = desired;
      if (!differs) return { written: false, version: current?.version ?? 0, foreign };
      const updated = await this.#call("writing the tunnel's configuration", (options) =>
        this.#tunnels.configurations.update(
          tunnel,
          // The package's types ask for a hostname in every rule, and know no `warp-routing`.
          { account_id: this.#account, config: configuration as never },
          options,
        ),
      );
      return { written: true, version: updated?.version ?? 0, foreign };
    });
  }

  async health(tunnel: string): Promise<TunnelHealth> {
    const { status, connections } = await this.#call("reading the tunnel's state", (options) =>
      this.#tunnels.get(tunnel, { account_id: this.#account }, options),
    );
    return { status: status ?? "inactive", connections: connections?.length ?? 0 };
  }

  /** Gone is gone: a tunnel that does not exist is no failure. */
  delete(tunnel: string): Promise<void> {
    return this.#exclusively(async () => {
      try {
        await this.#call("ending the tunnel's connections", (options) =>
          this.#tunnels.connections.delete(tunnel, { account_id: this.#account }, options),
        );
        await this.#call("deleting the tunnel", (options) =>
          this.#tunnels.delete(tunnel, { account_id: this.#account }, options),
        );
      } catch (error) {
        if (!(error instanceof ApiFailure && error.status === 404)) throw error;
      }
    });
  }

  get #tunnels(): Cloudflare["zeroTrust"]["tunnels"]["cloudflared"] {
    return this.#client.zeroTrust.tunnels.cloudflared;
  }

  async #call<T>(
    doing: string,
    call: (options: { readonly signal: AbortSignal }) => PromiseLike<T>,
  ): Promise<T> {
    const signal = this.#signal;
    try {
      return await retrying(async () => await call({ signal }), judgeApiError, {
        policy: this.#policy,
        signal,
      });
    } catch (error) {
      if (signal.aborted) throw new ApiFailure(STOPPING, { passing: true });
      throw failureOf(error, doing);
    }
  }

  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#writes.then(task, task);
    this.#writes = turn.catch(() => {});
    return turn;
  }
}

const STOPPING = { reason: "ApiUnavailable", message: "the process is stopping" };

function tunnelOf({ id, name }: { readonly id?: string; readonly name?: string }): Tunnel {
  if (id !== undefined && name !== undefined) return { id, name };
  const message = "the Cloudflare API names a tunnel without an id";
  throw new ApiFailure({ reason: "ApiUnavailable", message }, { passing: true });
}

function locallyConfigured(): ApiFailure {
  const message = "the tunnel is configured by a file where it runs; give the Gateway a tunnel of its own";
  return new ApiFailure({ reason: "ForeignConfiguration", message }, { passing: false });
}

function foreignCatchAll(): ApiFailure {
  const message =
    "the tunnel's last rule leads to a service that Mergeway has not written; remove the rule, or give the Gateway a tunnel of its own";
  return new ApiFailure({ reason: "ForeignConfiguration", message }, { passing: false });
}
