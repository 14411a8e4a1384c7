import type { Socket } from "node:net";
import type { ClientValidation } from "../../../plan/client-validation.ts";
import type { ItemId, PortItem } from "../../../plan/plan.ts";
import type { TenantBudget } from "./tenant-budgets.ts";

/** What is known of a connection before anything is read of it but a PROXY protocol's header. */
export interface Arrival {
  /** The item at that moment: a change of it is for later connections. */
  readonly port: PortItem;
  /** The address of the client: the TCP peer, or whom the PROXY protocol names. */
  readonly client: string;
}

/** What is known of a connection after its TLS handshake. */
export interface Handshake {
  /** Chosen by SNI. */
  readonly listener: ItemId;
  /** What the client has met. */
  readonly validation?: ClientValidation;
  /** Who it is, as backends are told (`X-Forwarded-Client-Cert`). */
  readonly clientCertificate?: string;
}

/** One client connection, from accept to close. */
export class Connection {
  readonly socket: Socket;
  readonly port: PortItem;
  readonly client: string;
  /** The port's number, as text for headers. */
  readonly portText: string;
  /** Chosen by SNI at the handshake; undefined on cleartext ports: each request chooses its own. */
  readonly listener: ItemId | undefined;
  readonly handshake: Handshake | undefined;
  /** Requests in flight; an upgraded connection counts as one until it closes. */
  active = 0;
  /** The budget that it counts against; on cleartext ports that of the last request's tenant. */
  #budget: TenantBudget | undefined;
  #closing = false;
  #close: (() => void) | undefined;

  constructor(socket: Socket, { port, client }: Arrival, handshake?: Handshake) {
    this.socket = socket;
    this.port = port;
    this.portText = String(port.port);
    this.listener = handshake?.listener;
    this.handshake = handshake;
    this.client = client;
  }

  get secure(): boolean {
    return this.listener !== undefined;
  }

  /** No further request is accepted, and the next response says so. */
  get closing(): boolean {
    return this.#closing;
  }

  /**
   * Sets how the protocol closes gracefully: HTTP/1 after the last response, HTTP/2 with GOAWAY and
   * the end of the last stream.
   */
  onClosing(close: () => void): void {
    this.#close = close;
    if (this.#closing) close();
  }

  closeGracefully(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#close?.();
  }

  requestEnded(): void {
    this.active--;
  }

  /**
   * Counts a cleartext connection against the budget of the tenant that its request is for. It
   * counts against no budget before its first request. False: the tenant has too many connections.
   */
  countFor(budget: TenantBudget | undefined): boolean {
    if (budget === this.#budget || this.listener !== undefined) return true;
    if (this.socket.destroyed || budget?.takeConnection() === false) return false;
    this.#budget?.giveBackConnection();
    this.#budget = budget;
    return true;
  }

  closed(): void {
    this.#budget?.giveBackConnection();
    this.#budget = undefined;
  }
}

/**
 * All connections of one thread, so that the connections of a removed port or listener can be
 * closed, and no others.
 */
export class Connections {
  /** Every accepted socket, also those without a request yet. */
  readonly #sockets: Set<Socket> = new Set();
  readonly #open: Set<Connection> = new Set();
  readonly #byListener: Map<ItemId, Set<Connection>> = new Map();
  #onEmpty: (() => void) | undefined;

  get size(): number {
    return this.#sockets.size;
  }

  accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", ignore);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#onEmpty?.();
    });
  }

  /** Adds a connection when it begins to speak HTTP. */
  add(connection: Connection): void {
    const { socket, listener } = connection;
    this.#open.add(connection);
    if (listener !== undefined) {
      const siblings = this.#byListener.get(listener) ?? new Set();
      this.#byListener.set(listener, siblings.add(connection));
    }
    socket.once("close", () => this.#remove(connection));
  }

  leaveListener(listener: ItemId): void {
    for (const connection of this.#byListener.get(listener) ?? []) connection.closeGracefully();
  }

  leavePort(port: ItemId): void {
    for (const connection of this.#open) if (connection.port.id === port) connection.closeGracefully();
  }

  /** Resolves when the last connection has closed, by itself or at the time limit. */
  async drain(graceMs: number): Promise<void> {
    for (const connection of this.#open) connection.closeGracefully();
    if (this.#sockets.size > 0 && graceMs > 0) {
      await new Promise<void>((resolve) => {
        const limit = setTimeout(resolve, graceMs);
        this.#onEmpty = () => {
          clearTimeout(limit);
          resolve();
        };
      });
    }
    for (const connection of this.#open) connection.socket.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  #remove(connection: Connection): void {
    connection.closed();
    this.#open.delete(connection);
    if (connection.listener === undefined) return;
    const siblings = this.#byListener.get(connection.listener);
    siblings?.delete(connection);
    if (siblings?.size === 0) this.#byListener.delete(connection.listener);
  }
}

/** The TCP peer. Over IPv4 it looks like `::ffff:192.0.2.1` on a socket bound to both families. */
export function peerOf({ remoteAddress = "" }: Socket): string {
  return remoteAddress.startsWith("::ffff:") ? remoteAddress.slice(7) : remoteAddress;
}

function ignore(): void {}
