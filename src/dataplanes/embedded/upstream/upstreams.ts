import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { BackendItem, BackendTls, Endpoint } from "../../../plan/backend.ts";
import type { CertificateItem } from "../../../plan/certificate.ts";
import { stricterLimit } from "../../../plan/limits/backend-limits.ts";
import type { GatewayItem, ItemId, PlanDelta } from "../../../plan/plan.ts";
import { backendTlsOptions } from "../../backend-tls.ts";
import type { Deadlines } from "../limits/deadlines.ts";
import type { Limits } from "../limits/options.ts";
import type { TenantBudgets } from "../limits/tenant-budgets.ts";
import { ConnectionBudget } from "./connection-budget.ts";
import { Connector } from "./connector.ts";
import { atRandom, type BalancedRequest, hashed, lessBusy, startingAt } from "./endpoint-order.ts";
import { H1Upstream } from "./h1-upstream.ts";
import { H2Upstream } from "./h2-upstream.ts";
import { RetryBudget } from "./retry-budget.ts";
import { sessionEndpoint } from "./sessions.ts";
import type { Upstream } from "./upstream.ts";

const SWEEP_MS = 30_000;
const UNUSED_MS = 60_000;

export interface UpstreamsParts {
  readonly table: RoutingTable;
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly tenants: TenantBudgets;
}

interface Pool {
  readonly upstream: Upstream;
  lastUsed: number;
}

/** The pools of one backend, one per endpoint and protocol, made when first needed. */
interface Pools {
  readonly tls: BackendTls | undefined;
  readonly clientCertificate: CertificateItem | undefined;
  readonly byEndpoint: Map<string, Pool>;
  /** The same pools, found without putting a key together; forgotten with every change. */
  readonly known: { readonly h1: Map<Endpoint, Pool>; readonly h2: Map<Endpoint, Pool> };
  /** Where the round begins for the next request. */
  next: number;
}

/**
 * Connections to all backends of this thread. A pool is kept while its endpoint is in the plan with
 * the same TLS settings, and while it is used now and then. Requests in flight finish on a pool
 * that is dropped.
 */
export class Upstreams {
  readonly #table: RoutingTable;
  readonly #limits: Limits;
  readonly #deadlines: Deadlines;
  readonly #tenants: TenantBudgets;
  readonly #pools: Map<ItemId, Pools> = new Map();
  readonly #retryBudgets: Map<ItemId, RetryBudget> = new Map();
  readonly #connectionBudgets: Map<ItemId, ConnectionBudget> = new Map();
  /** In flight, of backends that limit them. */
  readonly #requests: Map<ItemId, number> = new Map();
  readonly #gateways: Map<string, GatewayItem> = new Map();
  readonly #sweeper: NodeJS.Timeout;

  constructor({ table, limits, deadlines, tenants }: UpstreamsParts) {
    this.#table = table;
    this.#limits = limits;
    this.#deadlines = deadlines;
    this.#tenants = tenants;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  /** To be called after the table has taken the delta. */
  apply(delta: PlanDelta): void {
    for (const id of delta.removes) {
      this.#drop(id, () => true);
      for (const [name, gateway] of this.#gateways) if (gateway.id === id) this.#gateways.delete(name);
    }
    for (const item of delta.upserts) {
      if (item.type === "gateway") this.#gateways.set(item.gateway, item);
      else if (item.type === "backend") {
        const live = new Set(item.endpoints.map(keyOf));
        this.#drop(item.id, (key) => !live.has(key.slice(key.indexOf(" ") + 1)));
      }
    }
  }

  /** Endpoints in the order in which the request should try them, that of its session first. */
  order(
    backend: BackendItem,
    request: BalancedRequest,
    session: Endpoint | undefined = sessionEndpoint(backend, request),
  ): readonly Endpoint[] {
    const others = this.#balanced(backend, request);
    return session === undefined ? others : [session, ...others.filter((each) => each !== session)];
  }

  #balanced(backend: BackendItem, request: BalancedRequest): readonly Endpoint[] {
    const { endpoints, balancing } = backend;
    if (endpoints.length < 2) return endpoints;
    switch (balancing?.type) {
      case "random":
        return atRandom(endpoints);
      case "leastRequest":
        return lessBusy(endpoints, this.#activity(backend));
      case "hash":
        return hashed(endpoints, balancing.key, request);
      default: {
        const pools = this.#poolsOf(backend);
        return startingAt(endpoints, pools.next++ % endpoints.length);
      }
    }
  }

  #activity(backend: BackendItem): (endpoint: Endpoint) => number {
    const { byEndpoint } = this.#poolsOf(backend);
    return (endpoint) => {
      const key = keyOf(endpoint);
      const active = (protocol: "h1" | "h2"): number =>
        byEndpoint.get(`${protocol} ${key}`)?.upstream.active ?? 0;
      return active("h1") + active("h2");
    };
  }

  to(backend: BackendItem, endpoint: Endpoint, protocol: "h1" | "h2"): Upstream {
    const pools = this.#poolsOf(backend);
    const pool = pools.known[protocol].get(endpoint) ?? this.#open(backend, pools, endpoint, protocol);
    pool.lastUsed = Date.now();
    return pool.upstream;
  }

  /** Shared by all requests of the backend on this thread. */
  retryBudget(backend: ItemId): RetryBudget {
    const known = this.#retryBudgets.get(backend);
    if (known !== undefined) return known;
    const budget = new RetryBudget();
    this.#retryBudgets.set(backend, budget);
    return budget;
  }

  /** False: the backend has as many requests as it may. What was taken must be given back once. */
  takeRequest({ id, limits }: BackendItem): boolean {
    const { requests } = limits ?? {};
    if (requests === undefined) return true;
    const active = this.#requests.get(id) ?? 0;
    if (active >= this.#tenants.shareOf(requests)) return false;
    this.#requests.set(id, active + 1);
    return true;
  }

  giveBackRequest({ id, limits }: BackendItem): void {
    if (limits?.requests === undefined) return;
    const active = this.#requests.get(id) ?? 0;
    if (active > 1) this.#requests.set(id, active - 1);
    else this.#requests.delete(id);
  }

  /** Whether a request may be sent there, or wait for a connection. */
  mayWait(backend: BackendItem, upstream: Upstream): boolean {
    const { pendingRequests } = backend.limits ?? {};
    if (pendingRequests === undefined || !upstream.isBusy) return true;
    let waiting = 0;
    for (const pool of this.#poolsOf(backend).byEndpoint.values()) waiting += pool.upstream.waiting;
    return waiting < this.#tenants.shareOf(pendingRequests);
  }

  #connectionBudget({ id, gateway }: BackendItem): ConnectionBudget {
    const known = this.#connectionBudgets.get(id);
    if (known !== undefined) return known;
    const budget = new ConnectionBudget(() => {
      const own = this.#table.get("backend", id)?.limits?.connections;
      const ofTenant = this.#tenants.limitsOf(gateway).backendConnections;
      return stricterLimit(ofTenant, own === undefined ? undefined : this.#tenants.shareOf(own));
    });
    this.#connectionBudgets.set(id, budget);
    return budget;
  }

  #open(backend: BackendItem, pools: Pools, endpoint: Endpoint, protocol: "h1" | "h2"): Pool {
    const key = `${protocol} ${keyOf(endpoint)}`;
    let pool = pools.byEndpoint.get(key);
    if (pool === undefined) {
      const tls = pools.tls === undefined ? undefined : backendTlsOptions(pools.tls, pools.clientCertificate);
      const connector = new Connector(endpoint, tls, this.#limits.connectTimeoutMs);
      const budget = this.#connectionBudget(backend);
      const parts = { limits: this.#limits, deadlines: this.#deadlines, budget };
      const upstream =
        protocol === "h1" ? new H1Upstream(connector, parts) : new H2Upstream(connector, parts);
      pool = { upstream, lastUsed: 0 };
      pools.byEndpoint.set(key, pool);
    }
    pools.known[protocol].set(endpoint, pool);
    return pool;
  }

  /** Closes all pools, when all requests are answered and only copies to mirrors are left. */
  close(): void {
    clearInterval(this.#sweeper);
    for (const { byEndpoint } of this.#pools.values()) {
      for (const { upstream } of byEndpoint.values()) upstream.destroy();
    }
    this.#pools.clear();
  }

  #poolsOf(backend: BackendItem): Pools {
    const clientCertificate = backend.tls === undefined ? undefined : this.clientCertificate(backend.gateway);
    const pools = this.#pools.get(backend.id);
    if (
      pools !== undefined &&
      sameTls(pools.tls, backend.tls) &&
      pools.clientCertificate === clientCertificate
    ) {
      return pools;
    }
    this.#drop(backend.id, () => true);
    const fresh: Pools = {
      tls: backend.tls,
      clientCertificate,
      byEndpoint: new Map(),
      known: { h1: new Map(), h2: new Map() },
      next: Math.floor(Math.random() * 1024),
    };
    this.#pools.set(backend.id, fresh);
    return fresh;
  }

  /** What the Gateway presents to backends that ask for a certificate. */
  clientCertificate(gateway: string): CertificateItem | undefined {
    const id = this.#gateways.get(gateway)?.clientCertificate;
    return id === undefined ? undefined : this.#table.get("certificate", id);
  }

  #drop(id: ItemId, unwanted: (key: string, pool: Pool) => boolean): void {
    const pools = this.#pools.get(id);
    if (pools === undefined) return;
    pools.known.h1.clear();
    pools.known.h2.clear();
    for (const [key, pool] of pools.byEndpoint) {
      if (!unwanted(key, pool)) continue;
      pools.byEndpoint.delete(key);
      pool.upstream.close();
    }
    if (pools.byEndpoint.size === 0) this.#pools.delete(id);
  }

  #sweep(): void {
    const before = Date.now() - UNUSED_MS;
    for (const [id, budget] of this.#connectionBudgets) if (budget.unused) this.#connectionBudgets.delete(id);
    for (const [id, budget] of this.#retryBudgets) if (budget.idle) this.#retryBudgets.delete(id);
    for (const id of [...this.#pools.keys()]) {
      this.#drop(id, (_key, pool) => pool.lastUsed < before && pool.upstream.idle);
    }
  }
}

function keyOf(endpoint: Endpoint): string {
  return `${endpoint.address} ${endpoint.port}`;
}

function sameTls(a: BackendTls | undefined, b: BackendTls | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b));
}
