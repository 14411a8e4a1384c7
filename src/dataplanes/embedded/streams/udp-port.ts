/**
 * A port of protocol UDP.
 *
 *  - A client (address and port) that is heard for the first time gets a session: a backend by
 *    weight, one of its endpoints, a socket of its own. The session lasts until neither side has
 *    spoken for the idle timeout.
 *  - What cannot be served is dropped in silence: no rule, an invalid reference's share, no
 *    endpoint, a client that a guard does not let pass.
 *  - Sessions are capped. The idlest goes first; those whose client has never reacted to an answer
 *    go before those whose client has, so a flood of forged sources pushes out itself and not the
 *    conversations.
 *  - A session ends when its endpoint refuses it, when its endpoint, backend or rule is no longer
 *    there, or when a changed guard does not let its client pass.
 */

import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { BackendItem, Endpoint } from "../../../plan/backend.ts";
import type { GuardItem } from "../../../plan/guard.ts";
import type { ItemId } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import { letsStream } from "../guards/stream-guards.ts";
import { backendOf, inTurn, type StreamTable } from "./serve-stream.ts";
import type { Binding } from "./tcp-port.ts";
import { MAX_QUEUED_BYTES, UdpSession } from "./udp-session.ts";

export interface UdpPortOptions {
  readonly port: ItemId;
  readonly table: StreamTable;
  /** 0: sessions end only with their endpoints, or to make room. */
  readonly idleTimeoutMs: number;
  /** 0: as many as there are sockets for. */
  readonly maxSessions: number;
  readonly random?: () => number;
  /** Milliseconds of a steady clock. */
  readonly now?: () => number;
}

export interface UdpCounters {
  readonly received: number;
  readonly replied: number;
  readonly dropped: number;
  readonly evicted: number;
}

export class UdpPort {
  readonly #options: UdpPortOptions;
  readonly #random: () => number;
  readonly #now: () => number;
  /** Both in order of last activity, the idlest first. */
  readonly #unproven = new Map<string, UdpSession>();
  readonly #established = new Map<string, UdpSession>();
  readonly #counters = { received: 0, replied: 0, dropped: 0, evicted: 0 };
  #socket: Socket | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  /** What the sessions were last checked against. */
  #rule: Rule | undefined;
  #backends: ReadonlyMap<ItemId, BackendItem | undefined> = new Map();
  #guards: readonly (GuardItem | undefined)[] = [];

  constructor(options: UdpPortOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#now = options.now ?? (() => performance.now());
  }

  get sessions(): number {
    return this.#unproven.size + this.#established.size;
  }

  get counters(): UdpCounters {
    return { ...this.#counters };
  }

  /** Gives the port that is bound; rejects when it cannot be. */
  listen({ address, port, reusePort = false }: Binding): Promise<number> {
    const socket = createSocket({ type: isIPv6(address) ? "udp6" : "udp4", reusePort });
    this.reconcile();
    return new Promise((resolve, reject) => {
      socket.once("error", (error) => {
        socket.close();
        reject(error);
      });
      socket.bind({ address, port }, () => {
        socket.removeAllListeners("error");
        // Errors of a bound socket belong to single datagrams, which may be lost anyway.
        socket.on("error", () => {});
        socket.on("message", (datagram, from) => this.#receive(datagram, from));
        this.#socket = socket;
        const { idleTimeoutMs } = this.#options;
        if (idleTimeoutMs > 0)
          this.#sweeper = setInterval(() => this.#sweep(), Math.max(10, idleTimeoutMs / 4));
        resolve(socket.address().port);
      });
    });
  }

  /**
   * To be called after every change of the table. Walks the sessions only when something of this
   * port has changed.
   */
  reconcile(): void {
    const { table } = this.#options;
    const rule = this.#currentRule();
    const backends = new Map<ItemId, BackendItem | undefined>();
    if (rule?.action.type === "forward") {
      for (const { backend } of rule.action.backends) {
        if (backend !== undefined) backends.set(backend, table.get("backend", backend));
      }
    }
    const guards = (rule?.guards ?? []).map((id) => table.get("guard", id));
    const same =
      rule === this.#rule &&
      backends.entries().every(([id, item]) => this.#backends.get(id) === item) &&
      guards.every((item, index) => this.#guards[index] === item);
    this.#rule = rule;
    this.#guards = guards;
    this.#backends = backends;
    if (same) return;
    for (const session of this.#all()) {
      const endpoints = backends.get(session.backend)?.endpoints ?? [];
      const isLet = letsStream(table, rule, session.client.address);
      if (!isLet || !serves(endpoints, session.endpoint)) this.#end(session);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    for (const session of this.#all()) this.#end(session);
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket !== undefined) await new Promise<void>((resolve) => socket.close(resolve));
  }

  #receive(datagram: Buffer, from: RemoteInfo): void {
    this.#counters.received += 1;
    const key = `${from.address} ${from.port}`;
    const session = this.#established.get(key) ?? this.#unproven.get(key) ?? this.#open(key, from);
    if (session === undefined) {
      this.#counters.dropped += 1;
      return;
    }
    if (session.state === "answered") {
      session.state = "established";
      this.#unproven.delete(key);
    }
    this.#touch(session);
    if (!session.send(datagram)) this.#counters.dropped += 1;
  }

  #open(key: string, from: RemoteInfo): UdpSession | undefined {
    const { table } = this.#options;
    const rule = this.#currentRule();
    const isLet = letsStream(table, rule, from.address);
    const backend = isLet ? backendOf(rule, table, this.#random) : undefined;
    const endpoint = backend && inTurn(backend.endpoints, this.#random)();
    if (backend === undefined || endpoint === undefined) return undefined;
    const { maxSessions } = this.#options;
    if (maxSessions > 0) while (this.sessions >= maxSessions) this.#evict();
    const client = { address: from.address, port: from.port };
    return new UdpSession(
      {
        key,
        client,
        backend: backend.id,
        endpoint,
        onReply: (session, datagram) => this.#reply(session, datagram),
        onError: (session) => this.#end(session),
      },
      this.#now(),
    );
  }

  #reply(session: UdpSession, datagram: Buffer): void {
    if (session.state === "new") session.state = "answered";
    this.#touch(session);
    const socket = this.#socket;
    if (socket === undefined || socket.getSendQueueSize() > MAX_QUEUED_BYTES) {
      this.#counters.dropped += 1;
      return;
    }
    this.#counters.replied += 1;
    // The callback keeps an unreachable client from being an error of the whole port.
    socket.send(datagram, session.client.port, session.client.address, () => {});
  }

  #touch(session: UdpSession): void {
    session.lastActive = this.#now();
    const sessions = session.state === "established" ? this.#established : this.#unproven;
    sessions.delete(session.key);
    sessions.set(session.key, session);
  }

  #evict(): void {
    const idlest = first(this.#unproven) ?? first(this.#established);
    if (idlest === undefined) return;
    this.#counters.evicted += 1;
    this.#end(idlest);
  }

  #sweep(): void {
    const since = this.#now() - this.#options.idleTimeoutMs;
    for (const sessions of [this.#unproven, this.#established]) {
      for (const session of sessions.values()) {
        if (session.lastActive > since) break;
        this.#end(session);
      }
    }
  }

  #end(session: UdpSession): void {
    this.#unproven.delete(session.key);
    this.#established.delete(session.key);
    session.close();
  }

  *#all(): Iterable<UdpSession> {
    yield* this.#unproven.values();
    yield* this.#established.values();
  }

  #currentRule(): Rule | undefined {
    const { table, port } = this.#options;
    const listener = table.listenerFor(port, undefined);
    return listener && table.streamRule(listener.id, undefined);
  }
}

function first(sessions: ReadonlyMap<string, UdpSession>): UdpSession | undefined {
  return sessions.values().next().value;
}

function serves(endpoints: readonly Endpoint[], { address, port }: Endpoint): boolean {
  return endpoints.some((endpoint) => endpoint.address === address && endpoint.port === port);
}
