/**
 * Which pods serve the newest plan of their Gateway. A pod sends the digest of what it serves to
 * every controller, whichever of them sends it items. So every controller knows which pods lag, and
 * it does not matter which one leads.
 *
 * - A pod lags when it has not served the newest plan for `lagMs`. Under a steady flow of changes a
 *   pod is always a little behind. So its digest is looked up among the latest plans, and the time
 *   counts from when that plan was replaced.
 * - Two controllers may see changes in different orders. A digest that this controller never had,
 *   or had only before a plan that the pod served later, only proves that the pod is alive. Then
 *   the time counts from when the digest arrived.
 * - A pod that was never up to date since this controller started gets `firstMs` instead: it may
 *   have to resolve names and open streams, and controllers may be replaced at the moment.
 * - A pod that has lost its stream but is still in its Service counts: it still serves clients.
 */
export interface ConfirmedReplicas {
  readonly replicas: number;
  /** Names of pods. */
  readonly lagging: readonly string[];
}

/** A pod as its Service knows it. */
export interface ServedPod {
  readonly name: string;
  readonly isReady: boolean;
}

export interface LagLimits {
  readonly lagMs: number;
  readonly firstMs: number;
}

export const LAG_LIMITS: LagLimits = { lagMs: 10_000, firstMs: 60_000 };
const MOST_PAST = 1_000;
const EMPTY = "";

interface PodState {
  /** The last digest that the pod sent; undefined: none yet. */
  holds?: string;
  /**
   * Since when that digest is not the newest plan; undefined: it is. For a pod that has sent none,
   * since when the pod is known.
   */
  since: number | undefined;
  /** The latest time at which a plan that the pod served was the newest one. It only grows. */
  servedUntil: number;
  wasUpToDate: boolean;
  isConnected: boolean;
  isLagging: boolean;
}

interface GatewayState {
  plan: string;
  /** Digests of earlier plans with the time when each was replaced, the oldest first. */
  readonly past: Map<string, number>;
  readonly pods: Map<string, PodState>;
  /** Pods of the Service by name, and whether they are ready; undefined: not known. */
  existing?: ReadonlyMap<string, boolean>;
  told: string;
}

export interface ConfirmationOptions {
  /** Called when the set of lagging pods changes. */
  readonly tell: (gateway: string, confirmed: ConfirmedReplicas) => void;
  readonly now?: () => number;
  readonly limits?: Partial<LagLimits>;
}

export class Confirmations {
  readonly #gateways: Map<string, GatewayState> = new Map();
  readonly #tell: (gateway: string, confirmed: ConfirmedReplicas) => void;
  readonly #now: () => number;
  readonly #limits: LagLimits;

  constructor({ tell, now = () => performance.now(), limits }: ConfirmationOptions) {
    this.#tell = tell;
    this.#now = now;
    this.#limits = { ...LAG_LIMITS, ...limits };
  }

  /** The plan of a Gateway has changed. */
  planned(gateway: string, digest: string): void {
    const state = this.#state(gateway);
    if (state.plan === digest) return;
    const now = this.#now();
    state.past.delete(state.plan);
    state.past.set(state.plan, now);
    state.past.delete(digest);
    for (const oldest of state.past.keys()) {
      if (state.past.size <= MOST_PAST) break;
      state.past.delete(oldest);
    }
    state.plan = digest;
    for (const pod of state.pods.values()) {
      if (pod.holds === digest) caughtUp(pod);
      else if (pod.since === undefined) {
        pod.since = now;
        pod.servedUntil = now;
      }
    }
  }

  joined(gateway: string, name: string): void {
    const state = this.#state(gateway);
    this.#pod(state, name).isConnected = true;
    this.#judge(gateway, state);
  }

  left(gateway: string, name: string): void {
    const state = this.#state(gateway);
    this.#pod(state, name).isConnected = false;
    this.#judge(gateway, state);
  }

  said(gateway: string, name: string, holds: string): void {
    const state = this.#state(gateway);
    const pod = this.#pod(state, name);
    pod.holds = holds;
    if (holds === state.plan) caughtUp(pod);
    else {
      const overtaken = state.past.get(holds);
      const isKnown = overtaken !== undefined && overtaken >= pod.servedUntil;
      pod.since = isKnown ? overtaken : this.#now();
      pod.servedUntil = pod.since;
    }
    this.#judge(gateway, state);
  }

  /** The pods of the Gateway's Service that are not terminating; undefined: not known. */
  exist(gateway: string, pods: readonly ServedPod[] | undefined): void {
    const state = this.#state(gateway);
    if (pods === undefined) delete state.existing;
    else state.existing = new Map(pods.map(({ name, isReady }) => [name, isReady]));
    for (const name of state.existing?.keys() ?? []) this.#pod(state, name);
    this.#judge(gateway, state);
  }

  /**
   * Checks the time limits; called at intervals. A pod starts to lag only here, so that changes are
   * reported at most once per interval.
   */
  look(): void {
    for (const [gateway, state] of this.#gateways) {
      for (const [name, pod] of state.pods)
        pod.isLagging = this.#lags(pod, state.existing?.get(name) === true);
      this.#judge(gateway, state);
    }
  }

  /** Pods of a Gateway that lag. */
  lagging(gateway: string): readonly string[] {
    const state = this.#gateways.get(gateway);
    return state === undefined ? [] : confirmed(state).lagging;
  }

  confirmed(): ReadonlyMap<string, ConfirmedReplicas> {
    return new Map(Array.from(this.#gateways, ([gateway, state]) => [gateway, confirmed(state)]));
  }

  #judge(gateway: string, state: GatewayState): void {
    for (const [name, pod] of state.pods) {
      // A pod without a stream that is not in its Service either is gone.
      if (!pod.isConnected && state.existing?.has(name) !== true) state.pods.delete(name);
      else pod.isLagging &&= this.#lags(pod, state.existing?.get(name) === true);
    }
    const now = confirmed(state);
    const told = now.lagging.length === 0 ? EMPTY : JSON.stringify(now);
    if (told !== state.told) {
      state.told = told;
      this.#tell(gateway, now);
    }
    if (state.pods.size === 0 && state.existing === undefined && state.plan === EMPTY)
      this.#gateways.delete(gateway);
  }

  #lags({ holds, since, isConnected, isLagging, wasUpToDate }: PodState, isReady: boolean): boolean {
    if (since === undefined) return false;
    // The pod may be starting, or be of a version that sends no digests.
    if (holds === undefined && (isConnected || !isReady)) return false;
    const { lagMs, firstMs } = this.#limits;
    // Hysteresis: a pod that is always about `lagMs` behind must not change its state all the time.
    const timeLimitMs = !wasUpToDate ? firstMs : isLagging ? lagMs / 2 : lagMs;
    return this.#now() - since >= timeLimitMs;
  }

  #state(gateway: string): GatewayState {
    const known = this.#gateways.get(gateway);
    if (known !== undefined) return known;
    const state: GatewayState = { plan: EMPTY, past: new Map(), pods: new Map(), told: EMPTY };
    this.#gateways.set(gateway, state);
    return state;
  }

  #pod(state: GatewayState, name: string): PodState {
    const known = state.pods.get(name);
    if (known !== undefined) return known;
    const pod: PodState = {
      since: this.#now(),
      servedUntil: Number.NEGATIVE_INFINITY,
      wasUpToDate: false,
      isConnected: false,
      isLagging: false,
    };
    state.pods.set(name, pod);
    return pod;
  }
}

function caughtUp(pod: PodState): void {
  pod.since = undefined;
  pod.wasUpToDate = true;
}

/** Connected pods that are no longer in their Service do not count: they are terminating. */
function confirmed({ pods, existing }: GatewayState): ConfirmedReplicas {
  const counted = [...pods].filter(([name]) => existing === undefined || existing.has(name));
  return {
    replicas: counted.length,
    lagging: counted
      .filter(([, { isLagging }]) => isLagging)
      .map(([name]) => name)
      .sort(),
  };
}
