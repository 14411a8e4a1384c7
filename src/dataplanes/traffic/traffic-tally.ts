import type { ItemId } from "../../plan/plan.ts";
import {
  addAt,
  addTo,
  BUCKETS,
  CODES,
  type CountedRequest,
  FIRST_BUCKET,
  type HandshakeResult,
  type ListenerNumbers,
  noListenerNumbers,
  noNumbers,
  noRouteNumbers,
  RECEIVED,
  REFUSED_CONNECTIONS,
  RETRIES,
  SECONDS,
  SENT,
  type TrafficNumbers,
} from "./traffic-numbers.ts";

/** Reasons that are a backend's trouble. */
const UPSTREAM_ERRORS: ReadonlySet<string> = new Set([
  "BackendLimit",
  "BackendRefused",
  "BackendReset",
  "BackendTimeout",
  "BackendUnreachable",
  "InvalidAnswer",
  "NoEndpoints",
  "RequestTimeout",
]);

/**
 * Counts in the thread that serves. Whoever sums up takes the numbers from time to time, so that
 * counting a request touches a few numbers of this thread alone.
 */
export class TrafficTally {
  #numbers: TrafficNumbers = noNumbers();
  /** Plan items are immutable, so a rule's route has one text for as long as it is served. */
  readonly #routes: WeakMap<object, string> = new WeakMap();
  #isEmpty = true;
  /** Client connections that are open now. */
  open = 0;

  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  countRequest(request: CountedRequest): void {
    const { status, durationMs, reason, backend, route, attempts = 0 } = request;
    const listener = this.#listener(request.listener ?? "");
    const { sums, routes, replies } = listener;
    const name = route === undefined ? "" : this.#routeName(route);
    let codes = routes.get(name);
    if (codes === undefined) {
      codes = noRouteNumbers();
      routes.set(name, codes);
    }
    addAt(codes, classOf(status), 1);
    addAt(sums, RECEIVED, request.bytesReceived);
    addAt(sums, SENT, request.bytesSent);
    if (attempts > 1) addAt(sums, RETRIES, attempts - 1);
    addAt(sums, SECONDS, durationMs / 1_000);
    addAt(sums, FIRST_BUCKET + bucketOf(durationMs / 1_000), 1);
    if (reason === undefined) return;
    addTo(replies, reason, 1);
    if (backend !== undefined && UPSTREAM_ERRORS.has(reason)) this.#countUpstreamError(backend, reason);
  }

  /** A connection was closed because its listener's tenant has as many as it may have. */
  countRefusedConnection(listener: ItemId): void {
    addAt(this.#listener(listener).sums, REFUSED_CONNECTIONS, 1);
  }

  countHandshake(result: HandshakeResult, count = 1): void {
    this.#isEmpty = false;
    addTo(this.#numbers.handshakes, result, count);
  }

  countConnections(count: number): void {
    this.#isEmpty = false;
    this.#numbers.connections += count;
  }

  /** What was counted since the last call. */
  take(): TrafficNumbers {
    const taken = this.#numbers;
    this.#numbers = noNumbers();
    this.#isEmpty = true;
    return taken;
  }

  #listener(id: ItemId): ListenerNumbers {
    this.#isEmpty = false;
    const known = this.#numbers.listeners.get(id);
    if (known !== undefined) return known;
    const fresh = noListenerNumbers();
    this.#numbers.listeners.set(id, fresh);
    return fresh;
  }

  #countUpstreamError(backend: ItemId, reason: string): void {
    const { upstreamErrors } = this.#numbers;
    const reasons = upstreamErrors.get(backend) ?? new Map<string, number>();
    upstreamErrors.set(backend, reasons);
    addTo(reasons, reason, 1);
  }

  #routeName(route: NonNullable<CountedRequest["route"]>): string {
    const known = this.#routes.get(route);
    if (known !== undefined) return known;
    const name = `${route.kind}/${route.namespace}/${route.name}`;
    this.#routes.set(route, name);
    return name;
  }
}

function classOf(status: number): number {
  return Math.max(0, Math.min(Math.trunc(status / 100), CODES.length - 1));
}

/** Linear from the shortest bucket, since most requests are quick. */
function bucketOf(seconds: number): number {
  let bucket = 0;
  while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++;
  return bucket;
}
