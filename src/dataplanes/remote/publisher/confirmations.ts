/**
 * Which pods hold the plan of their Gateway. Pods tell every replica of the controller what they
 * serve, so each knows it of all of them, whoever feeds them, and it does not matter which one
 * leads.
 *
 * - A pod lags when it has not held the newest plan for `lagMs`. Under a steady flow of changes it
 *   never holds the newest one: what it tells is looked up among the latest plans, and it is behind
 *   since that one was overtaken.
 * - Two controllers may see changes in different orders. What a pod tells and nobody here has ever
 *   had, or only before what the pod has had since, is a sign of life: it is behind only since
 *   then.
 * - A pod that this controller has not seen up to date yet is given `firstMs`: names have to be
 *   resolved, streams to be opened, controllers to be replaced.
 * - A pod that is gone from the stream but not from its Service counts: it goes on serving what it
 *   has.
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
  /** What it serves, as it has told; undefined: it has not. */
  holds?: string;
  /** Since when that is not the plan; of a pod that has told nothing, since when it is known. */
  since: number | undefined;
  /** When something that it has served was the plan, at the latest: it does not go back. */
  servedUntil: number;
  wasUpToDate: boolean;
  isConnected: boolean;
  isLagging: boolean;
}

interface GatewayState {
  plan: string;
  /** Plans of before, each with the time when it was overtaken; the oldest first. */
  readonly past: Map<string, number>;
  readonly pods: Map<string, PodState>;
  /** By name, whether they are ready; undefined: nobody has told. */
  existing?: ReadonlyMap<string, boolean>;
  told: string;
}

export interface ConfirmationOptions {
  /** Called with every change of who lags. */
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

  /**
   * Which pods there are, as far as they are not about to go; undefined when there are none to be
   * had.
   */
  exist(gateway: string, pods: readonly ServedPod[] | undefined): void {
    const state = this.#state(gateway);
    if (pods === undefined) delete state.existing;
    else state.existing = new Map(pods.map(({ name, isReady }) => [name, isReady]));
    for (const name of state.existing?.keys() ?? []) this.#pod(state, name);
    this.#judge(gateway, state);
  }

  /**
   * Time has passed. Only then does a pod begin to lag, so that it is not told of more often than
   * somebody looks.
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
      // One that is neither here nor there is no more.
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
    // It may be starting, or of a version that tells nothing.
    if (holds === undefined && (isConnected || !isReady)) return false;
    const { lagMs, firstMs } = this.#limits;
    // Whoever is always about so far behind shall not be told of twice a second.
    const patience = !wasUpToDate ? firstMs : isLagging ? lagMs / 2 : lagMs;
    return this.#now() - since >= patience;
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

/** Pods that are connected but leave their Service do not count: they were told to go. */
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
