import { ClientSession, type ClientSessionEvents } from "../http2/client-session.ts";
import { SocketWire } from "../http2/wire.ts";
import type { Deadlines, Timed } from "../limits/deadlines.ts";
import type { Limits } from "../limits/options.ts";
import type { BudgetedPool, ConnectionBudget, PoolParts } from "./connection-budget.ts";
import type { Connector } from "./connector.ts";
import { H2Call } from "./h2-call.ts";
import type { Link } from "./link.ts";
import type {
  Upstream,
  UpstreamCall,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamRequest,
} from "./upstream.ts";

const IDLE_MS = 60_000;

/** HTTP/2, with prior knowledge or by ALPN, over as many connections as the streams need. */
export class H2Upstream implements Upstream, BudgetedPool {
  readonly #connector: Connector;
  readonly #limits: Limits;
  readonly #deadlines: Deadlines;
  readonly #budget: ConnectionBudget;
  readonly #connections: Set<Backend> = new Set();
  #waiting: H2Call[] = [];
  #opening = false;
  /** The last new connection allowed no stream: another one would not either. */
  #barren = false;
  #active = 0;
  #closed = false;

  constructor(connector: Connector, { limits, deadlines, budget }: PoolParts) {
    this.#connector = connector;
    this.#limits = limits;
    this.#deadlines = deadlines;
    this.#budget = budget;
    budget.join(this);
  }

  get idle(): boolean {
    return this.#active === 0;
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get isBusy(): boolean {
    return this.#waiting.length > 0 || this.#free() === undefined;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    this.#active++;
    const call = new H2Call({
      request,
      handler,
      deadlines: this.#deadlines,
      limits: this.#limits,
      onOver: this.#onOver,
      mayGetRoom: this.#mayGetRoom,
    });
    const connection = this.#waiting.length === 0 ? this.#free() : undefined;
    if (connection !== undefined) connection.start(call);
    else {
      this.#waiting.push(call);
      call.waitForRoom();
      if (this.#connections.size === 0) this.#barren = false;
      this.#serveWaiting();
    }
    return call;
  }

  close(): void {
    this.#closed = true;
    this.#budget.leave(this);
    if (this.#waiting.length > 0) return;
    for (const { session } of this.#connections) session.leave();
  }

  destroy(): void {
    this.close();
    for (const { session } of [...this.#connections]) session.destroy();
  }

  readonly #onOver = (): void => {
    this.#active--;
  };

  readonly #mayGetRoom = (): boolean => {
    for (const { session } of this.#connections) if (session.openStreams > 0) return true;
    return false;
  };

  /** First come, first served; another connection is opened when all are full. */
  #serveWaiting(): void {
    if (this.#waiting.length > 0) this.#waiting = this.#waiting.filter((call) => !call.over);
    while (this.#waiting.length > 0) {
      const connection = this.#free();
      if (connection === undefined) break;
      const call = this.#waiting.shift();
      if (call !== undefined) connection.start(call);
    }
    const { http2ConnectionsPerEndpoint } = this.#limits;
    const mayOpen = !this.#opening && !this.#barren && this.#connections.size < http2ConnectionsPerEndpoint;
    if (this.#waiting.length > 0 && mayOpen && this.#budget.take(this)) this.#open();
    if (this.#closed) this.close();
  }

  onRoom(): void {
    this.#serveWaiting();
  }

  closeIdle(): boolean {
    for (const { session } of this.#connections) {
      if (session.openStreams > 0) continue;
      session.leave();
      return true;
    }
    return false;
  }

  #free(): Backend | undefined {
    for (const connection of this.#connections) if (connection.session.hasRoom) return connection;
    return undefined;
  }

  #open(): void {
    this.#opening = true;
    try {
      this.#connector.connect("h2", (error, link) => {
        if (link === undefined) this.#onRefused(error?.message ?? "no connection");
        else this.#sendFirstSettings(link);
      });
    } catch (error) {
      // Not an address, or not a port.
      this.#onRefused((error as Error).message);
    }
  }

  /** A connection can be used once the backend's settings have arrived. */
  #sendFirstSettings(link: Link): void {
    let ready = false;
    link.socket.once("close", () => this.#budget.giveBack());
    const connection = new Backend(link, this.#limits, {
      deadlines: this.#deadlines,
      onReady: () => {
        const { hasRoom } = connection.session;
        if (!ready) {
          this.#connections.add(connection);
          this.#opening = false;
          this.#barren = !hasRoom;
        } else if (hasRoom) this.#barren = false;
        ready = true;
        this.#serveWaiting();
      },
      onRoom: () => {
        if (this.#waiting.length > 0) this.#serveWaiting();
      },
      onGone: () => {
        this.#connections.delete(connection);
        if (!ready) this.#onOpenFailed("the backend does not speak HTTP/2");
        else if (this.#barren && this.#connections.size === 0)
          this.#failWaiting("full", "the backend takes no streams");
        else if (this.#waiting.length > 0) this.#serveWaiting();
      },
    });
  }

  #onRefused(message: string): void {
    this.#budget.giveBack();
    this.#onOpenFailed(message);
  }

  /**
   * Waiting calls go to the connections that exist. Without any connection they fail.
   */
  #onOpenFailed(message: string): void {
    this.#opening = false;
    if (this.#connections.size === 0) this.#failWaiting("connect", message);
  }

  #failWaiting(kind: UpstreamFailure["kind"], message: string): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) call.fail(kind, message);
  }
}

/** One connection to the backend, and its idle time limit. */
class Backend implements Timed {
  readonly session: ClientSession;
  deadline: number = Number.POSITIVE_INFINITY;
  readonly #deadlines: Deadlines;

  constructor(
    link: Link,
    limits: Limits,
    { deadlines, onReady, onRoom, onGone }: ClientSessionEvents & { readonly deadlines: Deadlines },
  ) {
    this.#deadlines = deadlines;
    deadlines.add(this);
    this.deadline = deadlines.after(limits.connectTimeoutMs || IDLE_MS);
    const wire = new SocketWire(link.socket);
    this.session = new ClientSession(wire, limits, {
      onReady: () => {
        this.#rest();
        onReady();
      },
      onRoom: () => {
        if (this.session.openStreams === 0) this.#rest();
        onRoom();
      },
      onGone: () => {
        deadlines.delete(this);
        onGone();
      },
    });
    wire.attach(this.session, link);
  }

  start(call: H2Call): void {
    this.deadline = Number.POSITIVE_INFINITY;
    call.start(this.session);
  }

  onDeadline(): void {
    if (!this.session.settingsReceived) this.session.destroy();
    else if (this.session.openStreams === 0) this.session.leave();
  }

  #rest(): void {
    this.deadline = this.#deadlines.after(IDLE_MS);
  }
}
