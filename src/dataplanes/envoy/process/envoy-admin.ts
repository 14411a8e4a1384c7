/**
 * A client of Envoy's admin interface, whose socket only this pod or this user can reach.
 */

import { request } from "node:http";
import { READINESS_KEY } from "./readiness-listener.ts";

export interface DrainLimits {
  readonly graceMs: number;
  /**
   * How long to wait for idle connections. They are closed with their next response, and there may
   * be none.
   */
  readonly idleMs: number;
  /** The Envoy has ended. */
  readonly isGone: () => boolean;
}

const POLL_MS = 50;
const QUIET_POLLS = 3;

export class EnvoyAdmin {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  ask(method: "GET" | "POST", path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: this.#path, method, path, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve(Buffer.concat(chunks).toString()));
        response.on("error", reject);
      });
      asked.on("error", reject).end();
    });
  }

  /** Whether Envoy has all of its first configuration, and its workers serve. */
  async isLive(): Promise<boolean> {
    return (await this.ask("GET", "/ready").catch(() => "")).startsWith("LIVE");
  }

  /** Sets what Envoy answers to readiness probes. False if Envoy could not be reached. */
  async setReady(isReady: boolean): Promise<boolean> {
    const path = `/runtime_modify?${READINESS_KEY}=${isReady ? 100 : 0}`;
    return (await this.ask("POST", path).catch(() => "")).startsWith("OK");
  }

  /** Returns when no request is in flight, or after the time limits. */
  async drain({ graceMs, idleMs, isGone }: DrainLimits): Promise<void> {
    const began = performance.now();
    await this.ask("POST", "/drain_listeners?graceful&skip_exit").catch(() => undefined);
    let quiet = 0;
    while (!isGone() && performance.now() - began < graceMs && quiet < QUIET_POLLS) {
      const idleCounts = performance.now() - began < idleMs;
      const { requests, connections } = await this.#underWay().catch(() => NOTHING);
      quiet = requests === 0 && (connections === 0 || !idleCounts) ? quiet + 1 : 0;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async #underWay(): Promise<{ readonly requests: number; readonly connections: number }> {
    const stats = await this.ask("GET", "/stats?filter=downstream_(rq|cx)_active$&usedonly");
    const sum = (pattern: RegExp): number =>
      stats.matchAll(pattern).reduce((total, [, count]) => total + Number(count), 0);
    return {
      requests: sum(/^(?:http\.https?\.downstream_rq|tcp\.downstream_cx)_active: (\d+)$/gm),
      connections: sum(/^http\.https?\.downstream_cx_active: (\d+)$/gm),
    };
  }
}

const NOTHING = { requests: 0, connections: 0 };
