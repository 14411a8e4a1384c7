import type { ItemId, PlanDelta, PortItem } from "../../../plan/plan.ts";
import type { Binding } from "../streams/tcp-port.ts";
import type { PortServer } from "./port-server.ts";

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 10_000;
/** The longest that a timer can wait. */
const NEVER_MS = 2 ** 31 - 1;

export interface PortsOptions {
  readonly bindingOf: (port: PortItem) => Binding;
  readonly create: (port: PortItem) => PortServer;
  readonly onOutcome: (port: ItemId, outcome: PortOutcome) => void;
}

export type PortOutcome = { readonly bound: true } | { readonly bound: false; readonly message: string };

/**
 * The open ports of one thread. A port that cannot be bound is tried again, and delays no other.
 */
export class Ports {
  readonly #options: PortsOptions;
  readonly #open: Map<ItemId, OpenPort> = new Map();
  /** Removed ports with connections that have not ended yet. */
  readonly #leaving: Set<PortServer> = new Set();

  constructor(options: PortsOptions) {
    this.#options = options;
  }

  apply(delta: PlanDelta): void {
    for (const id of delta.removes) this.#close(id);
    for (const item of delta.upserts) {
      if (item.type !== "port") continue;
      const open = this.#open.get(item.id);
      if (open !== undefined && samePlace(open.item, item)) continue;
      this.#close(item.id);
      this.#open.set(item.id, new OpenPort(item, this.#options));
    }
    for (const port of this.#open.values()) port.server.reconcile?.();
  }

  async drain(graceMs: number): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const port of open) port.stop();
    const servers = [...open.map((port) => port.server), ...this.#leaving];
    await Promise.all(servers.map((server) => server.drain(graceMs)));
  }

  /** Connections to a removed port stay open until they end. */
  #close(id: ItemId): void {
    const port = this.#open.get(id);
    if (port === undefined) return;
    this.#open.delete(id);
    port.stop();
    this.#leaving.add(port.server);
    void port.server.drain(NEVER_MS).then(() => this.#leaving.delete(port.server));
  }
}

class OpenPort {
  readonly item: PortItem;
  readonly #options: PortsOptions;
  server: PortServer;
  #retry: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(item: PortItem, options: PortsOptions) {
    this.item = item;
    this.#options = options;
    this.server = options.create(item);
    this.#bind(FIRST_RETRY_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#retry);
    this.server.stop();
  }

  #bind(retryMs: number): void {
    const binding = this.#options.bindingOf(this.item);
    this.server.listen(binding).then(
      () => {
        if (this.#stopped) this.server.stop();
        else this.#options.onOutcome(this.item.id, { bound: true });
      },
      (error: NodeJS.ErrnoException) => {
        if (this.#stopped) return;
        this.#options.onOutcome(this.item.id, { bound: false, message: explain(error, binding.port) });
        this.#retry = setTimeout(() => {
          this.server = this.#options.create(this.item);
          this.#bind(Math.min(retryMs * 2, LAST_RETRY_MS));
        }, retryMs);
      },
    );
  }
}

/** Whether the port can stay open. Other changes take effect with the next connection. */
export function samePlace(a: PortItem, b: PortItem): boolean {
  return a.port === b.port && a.protocol === b.protocol && a.transport === b.transport;
}

function explain(error: NodeJS.ErrnoException, port: number): string {
  if (error.code === "EADDRINUSE") return `port ${port} is already in use by another program`;
  if (error.code === "EACCES") return `the process is not allowed to open port ${port}`;
  if (error.code === "EADDRNOTAVAIL") return `the address to bind port ${port} to is not one of this machine`;
  return `port ${port} cannot be opened: ${error.code ?? error.message}`;
}
