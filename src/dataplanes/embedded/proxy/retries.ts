import { performance } from "node:perf_hooks";
import {
  boundedRetry,
  DEFAULT_RETRY_BACKOFF_MS,
  MAX_RETRY_TIME_MS,
  RETRY_BACKOFF_GROWTH,
} from "../../../plan/retry-limits.ts";
import type { RetryPolicy, RuleOrigin } from "../../../plan/rule.ts";
import type { RetryBudget } from "../upstream/retry-budget.ts";
import type { RoutedRequest } from "./routed-request.ts";
import type { Serving } from "./serve-request.ts";

/**
 * The retries of one request, as its route asks for them and as far as they are granted: so many,
 * within a minute, while the client is there, the rule is in force and the backend's budget has
 * room. Waits double and vary, so that requests that failed together do not come back together.
 */
export class Retries {
  readonly #serving: Serving;
  readonly #request: RoutedRequest;
  readonly #policy: RetryPolicy | undefined;
  readonly #budget: RetryBudget;
  readonly #until: number;
  #used = 0;
  #holds = false;
  #over = false;

  constructor(
    serving: Serving,
    request: RoutedRequest,
    policy: RetryPolicy | undefined,
    budget: RetryBudget,
  ) {
    this.#serving = serving;
    this.#request = request;
    this.#policy = policy === undefined ? undefined : boundedRetry(policy);
    this.#budget = budget;
    this.#until = policy === undefined ? 0 : performance.now() + MAX_RETRY_TIME_MS;
    budget.begin();
  }

  wants(status: number): boolean {
    return this.#policy?.codes.includes(status) === true;
  }

  /** Milliseconds to wait before the next attempt; undefined if there is none. */
  next(): number | undefined {
    this.#giveBack();
    if (this.#policy === undefined || this.#used >= this.#policy.attempts) return undefined;
    const wait = this.#wait(this.#policy.backoffMs ?? DEFAULT_RETRY_BACKOFF_MS);
    if (performance.now() + wait > this.#until || this.#clientLeft()) return undefined;
    this.#holds = this.#budget.take();
    if (!this.#holds) return undefined;
    this.#used++;
    return wait;
  }

  /**
   * Whether the request would still be given to this route's backend, now that the wait is over.
   */
  stillServed(backend: string): boolean {
    const { listener, rule, authority } = this.#request;
    // The listener of a removed port or hostname has gone from the table.
    const current = listener === undefined ? undefined : this.#serving.table.get("listener", listener.id);
    if (current === undefined || rule === undefined || this.#clientLeft()) return false;
    const found = this.#serving.table.match(current, authority, this.#request)?.rule;
    if (found === undefined || !sameRoute(found.origin, rule.origin)) return false;
    const { action } = found;
    return action.type === "forward" && action.backends.some((entry) => entry.backend === backend);
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#giveBack();
    this.#budget.end();
  }

  /** A half-closed client still gets an answer; it does not make a backend work twice. */
  #clientLeft(): boolean {
    const { socket } = this.#request.exchange.connection;
    return socket.destroyed || socket.readableEnded;
  }

  #wait(base: number): number {
    const most = base * Math.min(2 ** this.#used, RETRY_BACKOFF_GROWTH);
    return base + Math.random() * (most - base);
  }

  #giveBack(): void {
    if (this.#holds) this.#budget.giveBack();
    this.#holds = false;
  }
}

function sameRoute(a: RuleOrigin, b: RuleOrigin): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}
