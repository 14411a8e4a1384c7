import type { ItemId, ListenerItem, PlanDelta } from "../../../plan/plan.ts";
import {
  DEFAULT_TENANT_LIMITS,
  isOfPlatform,
  type TenantLimits,
  tenantLimits,
} from "../../../plan/tenant-limits.ts";

/**
 * The limits of one Gateway's tenants in this thread; shared, so that a change holds for all of
 * them at once.
 */
interface Shares {
  limits: TenantLimits;
}

/**
 * What one tenant uses in this thread at the moment.
 */
export class TenantBudget {
  readonly #shares: Shares;
  readonly #onUnused: () => void;
  /** Listeners of the plan that are this tenant's. */
  listeners = 0;
  #connections = 0;
  #requests = 0;
  #bufferedBytes = 0;

  constructor(shares: Shares, onUnused: () => void) {
    this.#shares = shares;
    this.#onUnused = onUnused;
  }

  get connections(): number {
    return this.#connections;
  }

  get requests(): number {
    return this.#requests;
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /** So much waits in memory that nothing more may be added. */
  get isFull(): boolean {
    const { bufferedBytes } = this.#shares.limits;
    return bufferedBytes > 0 && this.#bufferedBytes >= bufferedBytes;
  }

  /**
   * For what can be done without. It gets half of the memory, so that it alone never has requests
   * refused.
   */
  hasRoomFor(bytes: number): boolean {
    const { bufferedBytes } = this.#shares.limits;
    return bufferedBytes === 0 || this.#bufferedBytes + bytes <= bufferedBytes / 2;
  }

  /** Bytes that begin to wait, or, with a negative number, that wait no longer. */
  addBuffered(bytes: number): void {
    this.#bufferedBytes += bytes;
  }

  /** False: the tenant is at its limit. What was taken must be given back once. */
  takeConnection(): boolean {
    const { connections } = this.#shares.limits;
    if (connections > 0 && this.#connections >= connections) return false;
    this.#connections++;
    return true;
  }

  giveBackConnection(): void {
    this.#connections--;
    if (this.listeners === 0) this.settle();
  }

  takeRequest(): boolean {
    const { requests } = this.#shares.limits;
    if (requests > 0 && this.#requests >= requests) return false;
    this.#requests++;
    return true;
  }

  giveBackRequest(): void {
    this.#requests--;
    if (this.listeners === 0) this.settle();
  }

  /**
   * Whether the tenant has no listener in the plan and uses nothing, so that it can be forgotten.
   */
  settle(): void {
    if (this.listeners === 0 && this.#connections === 0 && this.#requests === 0) this.#onUnused();
  }
}

/**
 * The tenants of a thread, by the owner of the listener. A tenant is known while the plan has a
 * listener of it, or while it has connections or requests. So removing a listener and adding it
 * again does not reset the budget.
 */
export class TenantBudgets {
  readonly #threads: number;
  readonly #byListener: Map<ItemId, TenantBudget> = new Map();
  readonly #byOwner: Map<string, TenantBudget> = new Map();
  readonly #shares: Map<string, Shares> = new Map();
  /** Which Gateway an item is of, for its removal. */
  readonly #gateways: Map<ItemId, string> = new Map();

  /**
   * A limit is divided among the threads of a pod, none of which knows of the others' connections.
   */
  constructor(threads = 1) {
    this.#threads = threads;
  }

  /** Undefined: the listener belongs to the platform team, or is unknown. */
  of(listener: ItemId): TenantBudget | undefined {
    return this.#byListener.get(listener);
  }

  /** In this thread; for whoever must hold a limit that is not a tenant's. */
  limitsOf(gateway: string): TenantLimits {
    return this.#sharesOf(gateway).limits;
  }

  /** The part of a pod's limit that this thread has. */
  shareOf(limit: number): number {
    return Math.ceil(limit / this.#threads);
  }

  /** All that are known. */
  budgets(): Iterable<TenantBudget> {
    return this.#byOwner.values();
  }

  apply({ upserts, removes }: PlanDelta): void {
    const left: (TenantBudget | undefined)[] = removes.map((id) => this.#leave(id));
    for (const id of removes) {
      const gateway = this.#gateways.get(id);
      if (gateway !== undefined) this.#setLimits(gateway, undefined);
      this.#gateways.delete(id);
    }
    for (const item of upserts) {
      if (item.type === "gateway") {
        this.#gateways.set(item.id, item.gateway);
        this.#setLimits(item.gateway, item.tenantLimits);
      } else if (item.type === "listener") {
        left.push(this.#leave(item.id));
        this.#enter(item);
      }
    }
    for (const budget of left) budget?.settle();
  }

  #enter(listener: ListenerItem): void {
    if (isOfPlatform(listener)) return;
    const key = keyOf(listener);
    let budget = this.#byOwner.get(key);
    if (budget === undefined) {
      const fresh = new TenantBudget(this.#sharesOf(listener.gateway), () => this.#byOwner.delete(key));
      this.#byOwner.set(key, fresh);
      budget = fresh;
    }
    budget.listeners++;
    this.#byListener.set(listener.id, budget);
  }

  #leave(listener: ItemId): TenantBudget | undefined {
    const budget = this.#byListener.get(listener);
    if (budget === undefined) return undefined;
    this.#byListener.delete(listener);
    budget.listeners--;
    return budget;
  }

  #setLimits(gateway: string, said: TenantLimits | undefined): void {
    const { connections, requests, backendConnections, bufferedBytes } = tenantLimits(said);
    this.#sharesOf(gateway).limits = {
      connections: this.#share(connections),
      requests: this.#share(requests),
      backendConnections: this.#share(backendConnections),
      bufferedBytes: this.#share(bufferedBytes),
    };
  }

  #sharesOf(gateway: string): Shares {
    let shares = this.#shares.get(gateway);
    if (shares === undefined) {
      shares = { limits: DEFAULT_TENANT_LIMITS };
      this.#shares.set(gateway, shares);
      this.#setLimits(gateway, undefined);
    }
    return shares;
  }

  #share(limit: number): number {
    return Math.ceil(limit / this.#threads);
  }
}

function keyOf({ gateway, owner }: ListenerItem): string {
  return `${gateway} ${owner.kind} ${owner.namespace}/${owner.name}`;
}
