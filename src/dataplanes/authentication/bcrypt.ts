/**
 * Comparisons with bcrypt and `$apr1$`, which are slow by intent: in a thread of their own, one at
 * a time, and the tenants take turns. Whoever tries passwords of one tenant makes that tenant's
 * users wait for the whole queue, and another tenant's for one comparison before each of theirs;
 * with more such tenants, for one of each. Requests that need no comparison do not wait.
 */
import { Worker } from "node:worker_threads";
import type { Compared, Comparison } from "./bcrypt-thread.ts";

/** Of one tenant. */
const MOST_WAITING = 64;

interface Waiting {
  readonly password: string;
  readonly hash: string;
  readonly signal: AbortSignal;
  readonly resolve: (equal: boolean) => void;
  readonly reject: (error: Error) => void;
}

export class BcryptComparer {
  readonly #queues: Map<string, Waiting[]> = new Map();
  #thread: Worker | undefined;
  #current: Waiting | undefined;
  #count = 0;

  /** Fails when too many of the tenant wait, or the thread ends. */
  compare(tenant: string, what: Pick<Waiting, "password" | "hash" | "signal">): Promise<boolean> {
    const queue = this.#queues.get(tenant) ?? [];
    if (queue.length >= MOST_WAITING) return Promise.reject(new Error("too many passwords wait"));
    return new Promise((resolve, reject) => {
      queue.push({ ...what, resolve, reject });
      this.#queues.set(tenant, queue);
      this.#next();
    });
  }

  close(): void {
    void this.#thread?.terminate();
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const waiting = this.#take();
    if (waiting === undefined) return;
    this.#current = waiting;
    const { password, hash } = waiting;
    this.#open().postMessage({ id: ++this.#count, password, hash } satisfies Comparison);
  }

  /** The next one of the tenant whose turn it is; those whose clients are gone are dropped. */
  #take(): Waiting | undefined {
    for (const [tenant, queue] of this.#queues) {
      this.#queues.delete(tenant);
      let waiting = queue.shift();
      while (waiting?.signal.aborted) {
        waiting.resolve(false);
        waiting = queue.shift();
      }
      // Behind all others.
      if (queue.length > 0) this.#queues.set(tenant, queue);
      if (waiting !== undefined) return waiting;
    }
    return undefined;
  }

  #open(): Worker {
    if (this.#thread !== undefined) return this.#thread;
    const thread = new Worker(new URL(THREAD_FILE, import.meta.url));
    thread.unref();
    thread.on("message", ({ id, equal }: Compared) => {
      if (id === this.#count) this.#done((waiting) => waiting.resolve(equal));
    });
    thread.on("error", () => {});
    thread.on("exit", () => {
      this.#thread = undefined;
      this.#done((waiting) => waiting.reject(new Error("the thread has ended")));
    });
    this.#thread = thread;
    return thread;
  }

  #done(tell: (waiting: Waiting) => void): void {
    const waiting = this.#current;
    this.#current = undefined;
    if (waiting !== undefined) tell(waiting);
    this.#next();
  }
}

const THREAD_FILE: string = import.meta.url.endsWith(".ts") ? "./bcrypt-thread.ts" : "./bcrypt-thread.js";
