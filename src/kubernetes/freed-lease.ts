/**
 * Tells a waiting replica at once that a Lease was handed back or deleted, so that nobody leads for
 * as short a time as possible. It is only a hint: whoever waits asks again from time to time, and
 * goes on doing so where the watch is refused or broken.
 */
import { collectionPath } from "./api-object.ts";
import { Backoff, pause } from "./backoff.ts";
import type { KubernetesClient, WatchEvent } from "./client.ts";

export interface FreedLeaseOptions {
  readonly client: KubernetesClient;
  readonly apiVersion: string;
  readonly namespace: string;
  readonly name: string;
}

const WATCH_SECONDS = 300;
/** A Lease that somebody has is renewed every few seconds. */
const IDLE_MS = 30_000;

export class FreedLease {
  readonly #options: FreedLeaseOptions;
  #wake: (() => void) | undefined;

  constructor(options: FreedLeaseOptions) {
    this.#options = options;
  }

  /** Waits so long, or until the Lease is free. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    const freed = new AbortController();
    this.#wake = () => freed.abort();
    await pause(ms, AbortSignal.any([signal, freed.signal]));
    this.#wake = undefined;
  }

  /** Watches until the signal is aborted. */
  async watch(signal: AbortSignal): Promise<void> {
    const { client, apiVersion, namespace, name } = this.#options;
    const path = collectionPath({ apiVersion, plural: "leases", namespace });
    const query = { fieldSelector: `metadata.name=${name}`, watch: true, timeoutSeconds: WATCH_SECONDS };
    const backoff = new Backoff({ firstMs: 1_000, mostMs: 60_000 });
    while (!signal.aborted) {
      try {
        for await (const events of client.watch({ path, query, signal, idleMs: IDLE_MS })) {
          if (events.some(isFree)) this.#wake?.();
          backoff.reset();
        }
      } catch {
        // Asking from time to time finds out the same, a little later.
      }
      await pause(backoff.next(), signal);
    }
  }
}

function isFree({ type, object }: WatchEvent): boolean {
  const lease = object as { readonly spec?: { readonly holderIdentity?: string | null } } | undefined;
  return type === "DELETED" || ((type === "ADDED" || type === "MODIFIED") && !lease?.spec?.holderIdentity);
}
