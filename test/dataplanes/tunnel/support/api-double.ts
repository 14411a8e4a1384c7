/**
 * A stand-in for the part of the Cloudflare API that tunnels use: the same paths, envelopes, error
 * codes, versions and rate limits, and the same refusals of documents that cloudflared would not
 * take.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TunnelConfiguration } from "../../../../src/dataplanes/tunnel/cloudflare/tunnel-configuration.ts";
import { configurationProblem } from "./ingress-rules.ts";

export interface StoredTunnel {
  readonly id: string;
  readonly name: string;
  readonly secret: Buffer;
  readonly configSource: "local" | "cloudflare";
  config: TunnelConfiguration | null;
  version: number;
  deleted: boolean;
  /** Connections by the id that the edge gave them. */
  readonly connections: Map<string, { readonly connector: string; readonly location: string }>;
}

/** What to answer instead of serving the request; taken in order, one each. */
export interface Fault {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Serve the request and then answer with the fault all the same, as a gateway that times out
   * does.
   */
  readonly afterwards?: true;
  /** Break the connection instead. */
  readonly reset?: true;
}

export interface Logged {
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

interface ListenOptions {
  readonly host?: string;
  readonly port?: number;
}

interface Reply {
  readonly status: number;
  readonly result?: unknown;
  readonly info?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly headers?: Readonly<Record<string, string>>;
}

export class ApiDouble {
  readonly account: string = randomBytes(16).toString("hex");
  /** May edit tunnels. */
  readonly token: string = randomBytes(20).toString("hex");
  /** Is valid, and may do nothing here. */
  readonly powerlessToken: string = randomBytes(20).toString("hex");
  readonly tunnels: Map<string, StoredTunnel> = new Map();
  readonly requests: Logged[] = [];
  readonly faults: Fault[] = [];
  /** Chooses a fault by the request, where the order of requests does not tell. */
  faultFor: (method: string, path: string) => Fault | undefined = () => undefined;
  /** Requests that may come before 429s do. */
  allowance: number = Number.POSITIVE_INFINITY;
  retryAfter: string = "0";
  onConfiguration: (tunnel: StoredTunnel) => void = () => {};
  onDisconnect: (tunnel: StoredTunnel) => void = () => {};
  /** Requests being served right now, and the most that ever were. */
  overlap: { writes: number; most: number } = { writes: 0, most: 0 };
  readonly #server: Server = createServer((request, response) => void this.#serve(request, response));

  static async start({ host = "127.0.0.1", port = 0 }: ListenOptions = {}): Promise<ApiDouble> {
    const api = new ApiDouble();
    await new Promise<void>((resolve) => api.#server.listen(port, host, resolve));
    return api;
  }

  get baseUrl(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}/client/v4`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  add(name: string, more: Partial<Pick<StoredTunnel, "config" | "configSource">> = {}): StoredTunnel {
    const tunnel: StoredTunnel = {
      id: randomUUID(),
      name,
      secret: randomBytes(32),
      configSource: more.configSource ?? "cloudflare",
      config: more.config ?? null,
      version: more.config === undefined ? 0 : 1,
      deleted: false,
      connections: new Map(),
    };
    this.tunnels.set(tunnel.id, tunnel);
    return tunnel;
  }

  named(name: string): StoredTunnel | undefined {
    return [...this.tunnels.values()].find((tunnel) => tunnel.name === name && !tunnel.deleted);
  }

  tokenOf(tunnel: StoredTunnel): string {
    const content = { a: this.account, t: tunnel.id, s: tunnel.secret.toString("base64") };
    return Buffer.from(JSON.stringify(content)).toString("base64");
  }

  /** How often something was asked, for tests that say it must not be. */
  count(method: string, path: RegExp): number {
    return this.requests.filter((request) => request.method === method && path.test(request.path)).length;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://api");
    const method = request.method ?? "GET";
    const path = url.pathname.replace(/^\/client\/v4/, "");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const fault = this.faults.shift() ?? this.faultFor(method, path);
    if (fault?.reset) {
      this.requests.push({ method, path, status: 0 });
      response.destroy();
      return;
    }
    const writes = method !== "GET";
    if (writes) this.overlap = grown(this.overlap);
    // Long enough for a second writer to come in between, if there were one.
    if (writes) await new Promise((resolve) => setTimeout(resolve, 5));
    const served =
      fault === undefined || fault.afterwards
        ? this.#answer(request, { method, path, url, body })
        : undefined;
    if (writes) this.overlap = { ...this.overlap, writes: this.overlap.writes - 1 };
    const reply: Reply =
      fault === undefined
        ? (served as Reply)
        : { status: fault.status, error: { code: 10013, message: "fault" }, headers: fault.headers ?? {} };
    this.requests.push({ method, path, status: reply.status });
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    response.end(
      JSON.stringify({
        success: reply.error === undefined,
        errors: reply.error === undefined ? [] : [reply.error],
        messages: [],
        result: reply.result ?? null,
        ...(reply.info === undefined ? {} : { result_info: reply.info }),
      }),
    );
  }

  #answer(request: IncomingMessage, asked: Asked): Reply {
    const refused = this.#authorize(request.headers.authorization);
    if (refused !== undefined) return refused;
    if (this.allowance-- <= 0) {
      this.allowance = Number.POSITIVE_INFINITY;
      return { ...failed(429, 971, "Please wait"), headers: { "retry-after": this.retryAfter } };
    }
    const parts = /^\/accounts\/([^/]+)\/cfd_tunnel(?:\/([^/]+)(?:\/([a-z]+))?)?$/.exec(asked.path);
    if (parts === null) return failed(404, 7000, "No route for that URI");
    const [, account, id, aspect] = parts;
    if (account !== this.account) return failed(404, 7003, "Could not route to that account");
    if (id === undefined) return asked.method === "POST" ? this.#create(asked.body) : this.#list(asked.url);
    const tunnel = this.tunnels.get(id);
    if (tunnel === undefined || tunnel.deleted) return failed(404, 1003, "Tunnel not found");
    switch (`${asked.method} ${aspect ?? ""}`) {
      case "GET ":
        return { status: 200, result: shown(tunnel) };
      case "DELETE ":
        if (tunnel.connections.size > 0) return failed(400, 1022, "Tunnel has active connections");
        tunnel.deleted = true;
        return { status: 200, result: shown(tunnel) };
      case "GET token":
        return { status: 200, result: this.tokenOf(tunnel) };
      case "GET connections":
        return { status: 200, result: connectionsOf(tunnel) };
      case "DELETE connections":
        tunnel.connections.clear();
        this.onDisconnect(tunnel);
        return { status: 200, result: null };
      case "GET configurations":
        return { status: 200, result: this.#configuration(tunnel) };
      case "PUT configurations":
        return this.#configure(tunnel, asked.body);
      default:
        return failed(405, 10405, "Method not allowed");
    }
  }

  #authorize(header: string | undefined): Reply | undefined {
    const token = /^Bearer ([A-Za-z0-9_-]+)$/.exec(header ?? "")?.[1];
    if (token === undefined) return failed(400, 6003, "Invalid request headers");
    if (token === this.powerlessToken) return failed(403, 10000, "Authentication error");
    return token === this.token ? undefined : failed(401, 1000, "Invalid API Token");
  }

  #list(url: URL): Reply {
    const name = url.searchParams.get("name");
    const deleted = url.searchParams.get("is_deleted");
    const found = [...this.tunnels.values()].filter(
      (tunnel) =>
        (name === null || tunnel.name === name) && (deleted === null || String(tunnel.deleted) === deleted),
    );
    const info = { page: 1, per_page: 20, count: found.length, total_count: found.length };
    return { status: 200, result: found.map(shown), info };
  }

  #create(body: string): Reply {
    const { name, config_src } = JSON.parse(body) as { name?: string; config_src?: "local" | "cloudflare" };
    if (!name) return failed(400, 1001, "Tunnel name is required");
    if (this.named(name) !== undefined) return failed(409, 1013, "You already have a tunnel with this name");
    return { status: 200, result: shown(this.add(name, { configSource: config_src ?? "local" })) };
  }

  #configuration({ id, config, version, configSource }: StoredTunnel): unknown {
    return { account_id: this.account, tunnel_id: id, version, config, source: configSource };
  }

  #configure(tunnel: StoredTunnel, body: string): Reply {
    const { config } = JSON.parse(body) as { config: TunnelConfiguration };
    const problem = configurationProblem(config);
    if (problem !== undefined) return failed(400, 1056, problem);
    tunnel.config = config;
    tunnel.version++;
    this.onConfiguration(tunnel);
    return { status: 200, result: this.#configuration(tunnel) };
  }
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly url: URL;
  readonly body: string;
}

function failed(status: number, code: number, message: string): Reply {
  return { status, error: { code, message } };
}

function shown(tunnel: StoredTunnel): unknown {
  const { id, name, deleted, connections, configSource } = tunnel;
  return {
    id,
    name,
    config_src: configSource,
    remote_config: configSource === "cloudflare",
    created_at: "2026-01-01T00:00:00Z",
    deleted_at: deleted ? "2026-01-02T00:00:00Z" : null,
    status: connections.size === 0 ? "inactive" : connections.size < 2 ? "degraded" : "healthy",
    connections: [...connections].map(([connection, { location }]) => ({
      id: connection,
      colo_name: location,
    })),
  };
}

function connectionsOf({ connections }: StoredTunnel): unknown {
  const byConnector = Map.groupBy(connections, ([, { connector }]) => connector);
  return [...byConnector].map(([id, conns]) => ({
    id,
    conns: conns.map(([connection]) => ({ id: connection })),
  }));
}

function grown({ writes, most }: { writes: number; most: number }): { writes: number; most: number } {
  return { writes: writes + 1, most: Math.max(most, writes + 1) };
}
