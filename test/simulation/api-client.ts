/**
 * The way from a controller to the API server. A request may be lost on its way there or on its way
 * back, be slow, or get no answer at all; the events of a watch come in order, late, until the
 * watch breaks off.
 */
import { ApiError } from "../../src/kubernetes/api-error.ts";
import {
  type ApiRequest,
  KubernetesClient,
  type WatchEvent,
  type WatchRequest,
} from "../../src/kubernetes/client.ts";
import { plainCredentials } from "../../src/kubernetes/credentials.ts";
import { type ApiServer, refusal } from "./api-server.ts";
import { Pipe } from "./pipe.ts";
import type { SimulatedProcess, World } from "./world.ts";

/** How the way is at the moment. */
export interface ApiWeather {
  /** Nothing gets through. */
  isCut: boolean;
  /** Of requests that are lost, in either direction. */
  loss: number;
  /** The most that a message takes. */
  delayMs: number;
  /** The server answers 503. */
  isOverloaded: boolean;
  /** The server has just started and does not know its custom resources yet: 404. */
  isStarting: boolean;
}

const ANSWER_TIMEOUT_MS = 30_000;
const CUSTOM = /^\/apis\/(gateway\.networking\.k8s\.io|mergeway\.dev)\//;
const BOOKMARK_MS = 60_000;

export class SimulatedClient extends KubernetesClient {
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #server: ApiServer;
  readonly #weather: ApiWeather;
  readonly #watches: Set<OpenWatch> = new Set();

  constructor(
    world: World,
    process: SimulatedProcess,
    { server, weather }: { readonly server: ApiServer; readonly weather: ApiWeather },
  ) {
    super(plainCredentials(new URL("http://simulated")), "simulation");
    this.#world = world;
    this.#process = process;
    this.#server = server;
    this.#weather = weather;
  }

  override request<T>(request: ApiRequest): Promise<T> {
    // A promise that ends late may go on in code of a process that is gone.
    if (!this.#process.isAlive) return new Promise(() => {});
    const { method = "GET", path, signal, timeoutMs = ANSWER_TIMEOUT_MS } = request;
    return new Promise<T>((resolve, reject) => {
      let isDone = false;
      const end = (act: () => void): void => {
        if (isDone) return;
        isDone = true;
        timeout.isCancelled = true;
        signal?.removeEventListener("abort", abort);
        act();
      };
      const abort = (): void => end(() => reject(signal?.reason));
      const fail = (why: string): void =>
        end(() => reject(ApiError.fromFailure(`${method} ${path}`, new Error(why))));
      const timeout = this.#world.after(timeoutMs, () => fail("no answer in time"), this.#process);
      if (signal?.aborted === true) return abort();
      signal?.addEventListener("abort", abort, { once: true });
      this.#world.outside(this.#delay(), () => {
        // What was on its way when the way was cut gets no answer.
        if (this.#weather.isCut) return;
        if (this.#isLost())
          return void this.#world.after(this.#delay(), () => fail("connection reset"), this.#process);
        const answer = this.#answer(request);
        if (this.#isLost()) {
          this.#world.tell("network", `loses the answer to ${this.#process.name}'s ${method} ${path}`);
          return void this.#world.after(this.#delay(), () => fail("connection reset"), this.#process);
        }
        this.#world.after(
          this.#delay(),
          () => {
            if (this.#weather.isCut) return;
            end(() => ("error" in answer ? reject(answer.error) : resolve(answer.value as T)));
          },
          this.#process,
        );
      });
    });
  }

  override async *watch(request: WatchRequest): AsyncGenerator<readonly WatchEvent[]> {
    const { path, query = {}, signal, idleMs } = request;
    // The way there and back, and all that can happen to it.
    await this.request({ path, query: { fieldSelector: "metadata.name=none" }, signal });
    const watch = new OpenWatch(this.#world, this.#process);
    // Some connections are never heard of again after a while without the network.
    const isFragile = this.#world.random.chance(0.2);
    const events = new Pipe<WatchEvent>(this.#world, {
      to: this.#process,
      delay: () => this.#delay(),
      isCut: () => this.#weather.isCut,
      deliver: (event) => watch.take(event),
    });
    const open = this.#server.watch(
      path,
      Number(query["resourceVersion"] ?? this.#server.version),
      (event) => {
        if (isFragile && this.#weather.isCut) {
          events.end();
          watch.isSilenced = true;
        }
        events.send(event);
      },
    );
    if (open === undefined) throw refusal(410, "Expired");
    this.#watches.add(watch);
    const remind = (): void => {
      if (watch.isEnded) return;
      events.send(this.#server.bookmark);
      this.#world.outside(BOOKMARK_MS, remind);
    };
    this.#world.outside(BOOKMARK_MS, remind);
    const abort = (): void => watch.end(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    this.#world.after(Number(query["timeoutSeconds"] ?? 300) * 1000, () => watch.end(), this.#process);
    try {
      for (;;) {
        const batch = await watch.next(idleMs);
        if (batch === undefined) return;
        yield batch;
      }
    } finally {
      open.end();
      events.end();
      watch.end();
      this.#watches.delete(watch);
      signal.removeEventListener("abort", abort);
    }
  }

  /** Whether a watch has lost its connection, and does not know it yet. */
  get hasSilencedWatch(): boolean {
    return [...this.#watches].some(({ isSilenced }) => isSilenced);
  }

  /** Every watch of this controller ends in the middle. */
  breakWatches(): void {
    for (const watch of this.#watches)
      watch.end(ApiError.fromFailure("watch", new Error("connection reset")));
  }

  #answer(request: ApiRequest): { readonly value: unknown } | { readonly error: unknown } {
    try {
      if (this.#weather.isOverloaded) throw refusal(503, "ServiceUnavailable");
      if (this.#weather.isStarting && CUSTOM.test(request.path)) throw refusal(404, "NotFound");
      return { value: this.#server.handle(request, this.#process.name) };
    } catch (error) {
      return { error };
    }
  }

  #isLost(): boolean {
    return this.#world.random.chance(this.#weather.loss / 2);
  }

  #delay(): number {
    return this.#world.random.between(1, this.#weather.delayMs);
  }
}

class OpenWatch {
  readonly #world: World;
  readonly #process: SimulatedProcess;
  isEnded = false;
  isSilenced = false;
  #failure: unknown;
  #arrived: WatchEvent[] = [];
  #wake: (() => void) | undefined;

  constructor(world: World, process: SimulatedProcess) {
    this.#world = world;
    this.#process = process;
  }

  take(event: WatchEvent): void {
    this.#arrived.push(event);
    this.#wake?.();
  }

  end(failure?: unknown): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#failure = failure;
    this.#wake?.();
  }

  /** Undefined when the server has ended it. */
  async next(idleMs: number): Promise<readonly WatchEvent[] | undefined> {
    if (this.#arrived.length === 0 && !this.isEnded) {
      const silence = this.#world.after(
        idleMs,
        () => this.end(ApiError.fromFailure("watch", new Error("the stream is silent"))),
        this.#process,
      );
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      silence.isCancelled = true;
      this.#wake = undefined;
    }
    if (this.#arrived.length > 0) return this.#arrived.splice(0);
    if (this.#failure !== undefined) throw this.#failure;
    return undefined;
  }
}
