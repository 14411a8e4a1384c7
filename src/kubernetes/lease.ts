/**
 * Leader election by a Lease, as other controllers of Kubernetes do it, so that `kubectl get lease`
 * reads as people expect. No clock of another machine is ever compared with ours: a holder counts
 * as gone when its record has not changed for its own lease duration, measured here. A leader that
 * cannot renew stops in good time before others may take over.
 */
import { ApiError, hasStatus } from "./api-error.ts";
import { type ApiMetadata, collectionPath, objectPath } from "./api-object.ts";
import { pause } from "./backoff.ts";
import type { KubernetesClient } from "./client.ts";
import { FreedLease } from "./freed-lease.ts";
import type { KubernetesObserver } from "./observer.ts";

export interface LeaderElectionOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly name: string;
  /** Unlike every other replica's: the pod's name, for instance. */
  readonly identity: string;
  readonly leaseMs?: number;
  /** After this long without a successful renewal the leader gives up. */
  readonly renewMs?: number;
  readonly retryMs?: number;
  /**
   * The leader's work. Its signal is aborted when leadership ends; nobody else is let in before the
   * promise settles, if time permits.
   */
  readonly onElected: (signal: AbortSignal) => Promise<void>;
  readonly onLost?: () => void;
  readonly observer?: KubernetesObserver;
}

const RETRY_MS = 2_000;

interface Lease {
  readonly metadata: ApiMetadata;
  readonly spec?: LeaseSpec;
}

interface LeaseSpec {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  readonly leaseTransitions?: number | null;
}

/**
 * Contends until the signal is aborted; then hands the lease back, so that another replica need not
 * wait.
 */
export async function runLeaderElection(options: LeaderElectionOptions, signal: AbortSignal): Promise<void> {
  const election = new Election(options);
  while (!signal.aborted) {
    if (!(await election.acquire(signal))) return;
    await lead(election, options, signal);
    // Work that fails at once must not make this a tight loop, and another replica goes first.
    await pause(options.retryMs ?? RETRY_MS, signal);
  }
}

async function lead(
  election: Election,
  { onElected, onLost, observer, identity }: LeaderElectionOptions,
  signal: AbortSignal,
): Promise<void> {
  const leadership = new AbortController();
  observer?.log?.("info", "this replica leads", { identity });
  const work = onElected(leadership.signal).catch((error: unknown) => {
    // Work that fails must not keep the lease: another replica may be able to do it.
    observer?.log?.("error", `the leader's work ended: ${ApiError.fromFailure("leader", error).message}`);
  });
  const ended = AbortSignal.any([signal, aborted(work)]);
  await election.renewUntilLost(ended);
  leadership.abort();
  await work;
  onLost?.();
  if (ended.aborted) await election.release();
  observer?.log?.("info", "this replica leads no longer", { identity });
}

function aborted(work: Promise<void>): AbortSignal {
  const ended = new AbortController();
  void work.finally(() => ended.abort());
  return ended.signal;
}

class Election {
  readonly #options: LeaderElectionOptions;
  readonly #leaseMs: number;
  readonly #renewMs: number;
  readonly #retryMs: number;
  /** The record as last seen, and when it was first seen to be so, by our own clock. */
  #seen: Lease | undefined;
  #seenAt = 0;
  #renewedAt = 0;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? 15_000;
    this.#renewMs = options.renewMs ?? 10_000;
    this.#retryMs = options.retryMs ?? RETRY_MS;
    if (this.#renewMs >= this.#leaseMs) throw new Error("renewMs must be shorter than leaseMs");
  }

  async acquire(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name } = this.#options;
    const freed = new FreedLease({ client, apiVersion: LEASES, namespace, name });
    const acquired = new AbortController();
    let watching: Promise<void> | undefined;
    try {
      while (!signal.aborted) {
        if (await this.#attempt(signal)) return true;
        watching ??= freed.watch(AbortSignal.any([signal, acquired.signal]));
        await freed.pause(this.#retryMs * (1 + Math.random() * 0.2), signal);
      }
      return false;
    } finally {
      acquired.abort();
      await watching;
    }
  }

  async renewUntilLost(signal: AbortSignal): Promise<void> {
    const left = (): number => this.#renewedAt + this.#renewMs - performance.now();
    while (await pause(Math.min(this.#retryMs, Math.max(left(), 0)), signal)) {
      const held = left() > 0 && (await this.#attempt(AbortSignal.any([signal, timeout(left())])));
      if (signal.aborted) return;
      if (!held && (this.#takenOver() || left() <= 0)) return;
    }
  }

  async release(): Promise<void> {
    const { client, observer, identity } = this.#options;
    try {
      const lease = await client.request<Lease>({ path: this.#path(), timeoutMs: 2_000 });
      if (lease.spec?.holderIdentity !== identity) return;
      const spec = { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now() };
      await this.#put({ ...lease, spec }, AbortSignal.timeout(2_000));
    } catch (error) {
      observer?.log?.("warn", `the lease could not be handed back: ${(error as Error).message}`);
    }
  }

  #takenOver(): boolean {
    const holder = this.#seen?.spec?.holderIdentity;
    return Boolean(holder) && holder !== this.#options.identity;
  }

  /** Takes or renews the lease; false when somebody else has it or the server does not answer. */
  async #attempt(signal: AbortSignal): Promise<boolean> {
    const { identity, observer } = this.#options;
    const startedAt = performance.now();
    try {
      const lease = await this.#read(signal);
      if (lease === undefined) {
        this.#observe(await this.#create(signal));
      } else {
        this.#observe(lease);
        const holder = lease.spec?.holderIdentity;
        if (holder && holder !== identity && !this.#expired(lease)) return false;
        this.#observe(await this.#put(this.#ours(lease), signal));
      }
      // The others count from when the record reached the server, which is later than this.
      this.#renewedAt = startedAt;
      return true;
    } catch (error) {
      if (!signal.aborted && !hasStatus(error, 409)) {
        observer?.log?.("warn", `leader election: ${(error as Error).message}`, { identity });
      }
      return false;
    }
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.#options.client.request<Lease>({ path: this.#path(), signal, timeoutMs: 5_000 });
    } catch (error) {
      if (hasStatus(error, 404)) return undefined;
      throw error;
    }
  }

  #create(signal: AbortSignal): Promise<Lease> {
    const { client, namespace, name } = this.#options;
    return client.request<Lease>({
      method: "POST",
      path: collectionPath({ apiVersion: LEASES, plural: "leases", namespace }),
      body: { apiVersion: LEASES, kind: "Lease", ...this.#ours({ metadata: { name, namespace } }) },
      signal,
      timeoutMs: 5_000,
    });
  }

  /** Its resourceVersion goes along: of two replicas that try at once, one gets a conflict. */
  #put(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const { client } = this.#options;
    const body = { ...lease, apiVersion: LEASES, kind: "Lease" };
    return client.request<Lease>({ method: "PUT", path: this.#path(), body, signal, timeoutMs: 5_000 });
  }

  #ours(lease: Lease): Lease {
    const { identity } = this.#options;
    const kept = lease.spec?.holderIdentity === identity;
    const transitions = lease.spec?.leaseTransitions ?? 0;
    return {
      ...lease,
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(this.#leaseMs / 1000),
        acquireTime: (kept ? lease.spec?.acquireTime : undefined) ?? now(),
        renewTime: now(),
        leaseTransitions: kept || lease.spec === undefined ? transitions : transitions + 1,
      },
    };
  }

  #observe(lease: Lease): void {
    if (this.#seen?.metadata.resourceVersion === lease.metadata.resourceVersion) return;
    this.#seen = lease;
    this.#seenAt = performance.now();
  }

  #expired(lease: Lease): boolean {
    const duration = (lease.spec?.leaseDurationSeconds ?? 0) * 1000 || this.#leaseMs;
    return performance.now() - this.#seenAt > duration;
  }

  #path(): string {
    const { namespace, name } = this.#options;
    return objectPath({ apiVersion: LEASES, plural: "leases", namespace }, name);
  }
}

const LEASES = "coordination.k8s.io/v1";

function timeout(ms: number): AbortSignal {
  return AbortSignal.timeout(Math.max(1, Math.ceil(ms)));
}

/** Kubernetes' MicroTime. */
function now(): string {
  return new Date().toISOString().replace("Z", "000Z");
}
