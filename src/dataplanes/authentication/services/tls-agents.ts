/**
 * Connections over TLS to services that are asked. Node's agents tell connections apart by address
 * and name, and not by who vouched for the service; where a request brings its own check of the
 * name, newer versions of Node use no connection twice. So each backend's TLS has its own agent.
 */
import { Agent } from "node:https";
import type { ConnectionOptions, SecureContext } from "node:tls";

/** To one endpoint. */
export const CONNECTIONS = { keepAlive: true, maxSockets: 256, timeout: 30_000 };

export class TlsAgents {
  /** A context is of one backend's TLS, and goes with it. Idle connections close by themselves. */
  readonly #agents: WeakMap<SecureContext, Agent> = new WeakMap();
  readonly #all: Set<WeakRef<Agent>> = new Set();

  of(tls: ConnectionOptions): Agent {
    const { secureContext } = tls;
    if (secureContext === undefined) throw new TypeError("TLS needs a context");
    const known = this.#agents.get(secureContext);
    if (known !== undefined) return known;
    for (const each of this.#all) if (each.deref() === undefined) this.#all.delete(each);
    const agent = new Agent({ ...CONNECTIONS, ...tls });
    this.#agents.set(secureContext, agent);
    this.#all.add(new WeakRef(agent));
    return agent;
  }

  close(): void {
    for (const each of this.#all) each.deref()?.destroy();
  }
}
