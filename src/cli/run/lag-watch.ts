/**
 * Tells of Gateways whose data plane has not taken what it was given for too long: of an Envoy that
 * hangs, nothing else would.
 */
import type { DataPlane } from "../../dataplanes/dataplane.ts";
import { LAG_LIMITS } from "../../dataplanes/remote/publisher/confirmations.ts";

export interface LagWatchOptions {
  readonly dataPlane: DataPlane;
  /** Called with every change, by `namespace/name` of the Gateway. */
  readonly onLag: (gateway: string, isLagging: boolean) => void;
  readonly limitMs?: number;
}

export class LagWatch {
  readonly #options: LagWatchOptions;
  /** Gateways that are waited for, and whether something was applied meanwhile. */
  readonly #waiting: Map<string, { isNews: boolean }> = new Map();

  constructor(options: LagWatchOptions) {
    this.#options = options;
  }

  /** The data plane has been given something of these Gateways. */
  applied(gateways: Iterable<string>): void {
    for (const gateway of gateways) {
      const waiting = this.#waiting.get(gateway);
      if (waiting === undefined) void this.#wait(gateway);
      else waiting.isNews = true;
    }
  }

  async #wait(gateway: string): Promise<void> {
    const { dataPlane, onLag, limitMs = LAG_LIMITS.lagMs } = this.#options;
    const waiting = { isNews: true };
    this.#waiting.set(gateway, waiting);
    while (waiting.isNews) {
      waiting.isNews = false;
      let isLagging = false;
      const timer = setTimeout(() => {
        isLagging = true;
        onLag(gateway, true);
      }, limitMs).unref();
      const isServed = await dataPlane.served?.(gateway);
      clearTimeout(timer);
      if (isServed === false) return;
      if (isLagging) onLag(gateway, false);
    }
    this.#waiting.delete(gateway);
  }
}
