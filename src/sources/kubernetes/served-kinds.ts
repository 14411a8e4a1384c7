/**
 * Which kinds are watched: those that the API server serves now. A kind that is not installed is no
 * error; one that appears is watched from then on, one that goes is forgotten. Absence must be seen
 * several times before it is believed: a server that is just starting may not know its own CRDs
 * yet, and forgetting a kind takes down everything that it configured.
 */
import type { Kind } from "../../api/resource.ts";
import { ApiError } from "../../kubernetes/api-error.ts";
import { Backoff, pause } from "../../kubernetes/backoff.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import { discover, type Served } from "./discovery.ts";

export interface ServedKindsOptions {
  readonly client: KubernetesClient;
  readonly kinds: readonly Kind[];
  /** The kind is served in this version: watch it, or watch it in this version instead. */
  readonly start: (kind: Kind, apiVersion: string) => void;
  readonly stop: (kind: Kind) => void;
  /** After the first complete discovery. */
  readonly onKnown: () => void;
  /** Time between discoveries when nothing is known to have changed. */
  readonly pollMs: () => number;
  readonly observer?: KubernetesObserver;
}

const TIMES_ABSENT = 3;
/** After news, discovery is repeated: it lags behind the CRDs that it describes. */
const FOLLOW_UPS_MS: readonly number[] = [100, 500, 1_000, 3_000];
const RECHECK_MS = 1_000;

export class ServedKinds {
  readonly #options: ServedKindsOptions;
  readonly #watched = new Map<Kind, string>();
  readonly #absences = new Map<Kind, number>();
  #followUps: number[] = [];
  #wake: AbortController = new AbortController();
  #isKnown = false;

  constructor(options: ServedKindsOptions) {
    this.#options = options;
  }

  /** Something about CRDs has changed. */
  poke(): void {
    this.#followUps = [...FOLLOW_UPS_MS];
    this.#wake.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, kinds, observer, pollMs, onKnown } = this.#options;
    const backoff = new Backoff({ firstMs: 250, mostMs: 8_000 });
    while (!signal.aborted) {
      let wait: number;
      try {
        this.#reconcile(await discover(client, kinds, signal));
        backoff.reset();
        if (!this.#isKnown) onKnown();
        this.#isKnown = true;
        wait = this.#absences.size > 0 ? RECHECK_MS : (this.#followUps.shift() ?? pollMs());
      } catch (error) {
        if (signal.aborted) return;
        const failure = ApiError.fromFailure("discovery", error);
        wait = backoff.next(failure.retryAfterMs);
        observer?.log?.("warn", `cannot discover kinds: ${failure.message}`, { retryInMs: Math.round(wait) });
      }
      this.#wake = new AbortController();
      await pause(wait, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  #reconcile(served: Served): void {
    for (const kind of this.#options.kinds) {
      const apiVersion = served.get(kind);
      if (apiVersion === undefined) this.#absent(kind);
      else this.#present(kind, apiVersion);
    }
  }

  #present(kind: Kind, apiVersion: string): void {
    this.#absences.delete(kind);
    const before = this.#watched.get(kind);
    if (before === apiVersion) return;
    this.#watched.set(kind, apiVersion);
    this.#options.observer?.log?.("info", `${kind} is served as ${apiVersion}`);
    this.#options.start(kind, apiVersion);
  }

  #absent(kind: Kind): void {
    if (!this.#watched.has(kind)) return;
    const times = (this.#absences.get(kind) ?? 0) + 1;
    this.#absences.set(kind, times);
    if (times < TIMES_ABSENT) return;
    this.#absences.delete(kind);
    this.#watched.delete(kind);
    this.#options.observer?.log?.("info", `${kind} is not served any more`);
    this.#options.stop(kind);
  }
}
