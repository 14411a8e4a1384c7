import type { ItemId } from "../../plan/plan.ts";
import type { RuleOrigin } from "../../plan/rule.ts";

/** The fields of a request record that are counted. */
export interface CountedRequest {
  /** Absent: no listener took the request. */
  readonly listener?: ItemId | undefined;
  readonly route?: Pick<RuleOrigin, "kind" | "namespace" | "name"> | undefined;
  readonly backend?: ItemId | undefined;
  /** 0 when the client left before there was one. */
  readonly status: number;
  readonly durationMs: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** How often a backend was asked; absent: at most once. */
  readonly attempts?: number | undefined;
  /** Why the data plane answered without a backend. */
  readonly reason?: string | undefined;
}

/** How a TLS handshake ended. */
export type HandshakeResult = "completed" | "unknown_name" | "client_certificate" | "failed";

/** Classes of statuses; `000`: the client left before there was one. */
export const CODES = ["000", "1xx", "2xx", "3xx", "4xx", "5xx"] as const;
/** Upper bounds in seconds; longer requests count in the +Inf bucket. */
export const BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

/** Positions in the numbers of a listener. The buckets come last. */
export const RECEIVED = 0;
export const SENT = 1;
export const RETRIES = 2;
export const SECONDS = 3;
export const REFUSED_CONNECTIONS = 4;
export const FIRST_BUCKET = 5;
const LISTENER_SIZE: number = FIRST_BUCKET + BUCKETS.length + 1;

/** What was counted for one listener. */
export interface ListenerNumbers {
  readonly sums: Float64Array;
  /** By route (`Kind/namespace/name`, or empty); one number for each of `CODES`. */
  readonly routes: Map<string, Float64Array>;
  /** Answers of the data plane itself, by reason. */
  readonly replies: Map<string, number>;
}

/** What was counted in one thread or process, as it can be sent to another. */
export interface TrafficNumbers {
  /** By listener; those of requests without one are at the empty id. */
  readonly listeners: Map<ItemId, ListenerNumbers>;
  /** By backend and reason. */
  readonly upstreamErrors: Map<ItemId, Map<string, number>>;
  readonly handshakes: Map<HandshakeResult, number>;
  connections: number;
}

export function noNumbers(): TrafficNumbers {
  return { listeners: new Map(), upstreamErrors: new Map(), handshakes: new Map(), connections: 0 };
}

export function noListenerNumbers(): ListenerNumbers {
  return { sums: new Float64Array(LISTENER_SIZE), routes: new Map(), replies: new Map() };
}

export function noRouteNumbers(): Float64Array {
  return new Float64Array(CODES.length);
}

export function addAt(numbers: Float64Array, at: number, amount: number): void {
  numbers[at] = (numbers[at] as number) + amount;
}

export function addEach(to: Float64Array, from: Float64Array): void {
  for (let at = 0; at < to.length; at++) to[at] = (to[at] as number) + (from[at] as number);
}

export function addTo<K>(counts: Map<K, number>, key: K, amount: number): void {
  counts.set(key, (counts.get(key) ?? 0) + amount);
}
