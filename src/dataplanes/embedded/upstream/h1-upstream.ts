import type { Deadlines } from "../limits/deadlines.ts";
import type { Limits } from "../limits/options.ts";
import type { BudgetedPool, ConnectionBudget, PoolParts } from "./connection-budget.ts";
import type { Connector } from "./connector.ts";
import { H1Call } from "./h1-call.ts";
import { type ConnectionOwner, H1Connection } from "./h1-connection.ts";
import type { Link } from "./link.ts";
import type { Upstream, UpstreamCall, UpstreamHandler, UpstreamRequest } from "./upstream.ts";

/** HTTP/1.1 over a pool of kept-alive connections; the one that was used last is used first. */
export class H1Upstream implements Upstream, ConnectionOwner, BudgetedPool {
  readonly #connector: Connector;
  readonly #limits: Limits;
  readonly #deadlines: Deadlines;
  readonly #budget: ConnectionBudget;
  readonly #all: Set<H1Connection> = new Set();
  readonly #free: H1Connection[] = [];
  #waiting: H1Call[] = [];
  #connecting = 0;
  #closed = false;

  constructor(connector: Connector, { limits, deadlines, budget }: PoolParts) {
    this.#connector = connector;
    this.#limits = limits;
    this.#deadlines = deadlines;
    this.#budget = budget;
    budget.join(this);
  }

  get idle(): boolean {
    return this.#connecting === 0 && this.#waiting.length === 0 && this.#free.length === this.#all.size;
  }

  get active(): number {
    return this.#waiting.length + this.#all.size - this.#free.length;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get isBusy(): boolean {
    return this.#free.length === 0;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    let call: H1Call;
    try {
      call = new H1Call(request, handler);
    } catch (error) {
      handler.onFailure({ kind: "invalid", message: (error as Error).message });
      return { unsentBytes: 0, cancel: ignore };
    }
    const connection = this.#free.pop();
    if (connection !== undefined) connection.send(call);
    else {
      this.#waiting.push(call);
      call.waitForRoom(this.#deadlines);
      this.#openMore();
    }
    return call;
  }

  close(): void {
    this.#closed = true;
    this.#budget.leave(this);
    for (const connection of this.#free.splice(0)) connection.destroy();
  }

  destroy(): void {
    this.close();
    for (const connection of this.#all) connection.destroy();
    for (const call of this.#waiting.splice(0)) call.fail("reset", "the pool is gone");
  }

  onFree(connection: H1Connection): void {
    const call = this.#nextWaiting();
    if (call !== undefined) connection.send(call);
    else if (this.#closed) connection.destroy();
    else this.#free.push(connection);
  }

  onGone(connection: H1Connection): void {
    this.#all.delete(connection);
    const at = this.#free.indexOf(connection);
    if (at >= 0) this.#free.splice(at, 1);
    this.#openMore();
  }

  onRoom(): void {
    this.#openMore();
  }

  closeIdle(): boolean {
    const idle = this.#free.pop();
    idle?.destroy();
    return idle !== undefined;
  }

  /** One attempt for each that waits, as far as there is room. */
  #openMore(): void {
    while (
      this.#connecting < this.#waiting.length &&
      this.#all.size + this.#connecting < this.#limits.connectionsPerEndpoint &&
      this.#budget.take(this)
    ) {
      this.#connecting++;
      try {
        this.#connector.connect("http/1.1", (error, link) => {
          if (link === undefined) this.#onRefused(error?.message ?? "no connection");
          else this.#onConnected(link);
        });
      } catch (error) {
        // Not an address, or not a port.
        this.#onRefused((error as Error).message);
      }
    }
  }

  #onConnected(link: Link): void {
    this.#connecting--;
    link.socket.once("close", () => this.#budget.giveBack());
    const connection = new H1Connection(link, this, { limits: this.#limits, deadlines: this.#deadlines });
    this.#all.add(connection);
    this.onFree(connection);
  }

  /** Each attempt speaks for one that waits. */
  #onRefused(message: string): void {
    this.#connecting--;
    this.#budget.giveBack();
    this.#nextWaiting()?.fail("connect", message);
    this.#openMore();
  }

  #nextWaiting(): H1Call | undefined {
    let call = this.#waiting.shift();
    while (call?.over === true) call = this.#waiting.shift();
    return call;
  }
}

function ignore(): void {}
