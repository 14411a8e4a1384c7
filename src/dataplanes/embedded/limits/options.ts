import type { PortItem } from "../../../plan/plan.ts";
import type { RequestRecord } from "../../request-record.ts";
import type { SamplingSettings } from "../../telemetry/telemetry-settings.ts";
import type { TrafficCounts } from "../../traffic/traffic-counts.ts";

export interface EmbeddedOptions {
  readonly bind: BindOptions;
  /** Threads that serve; 0 serves in the calling thread, "auto" takes one per core. */
  readonly workers?: number | "auto";
  readonly limits?: Partial<Limits>;
  /** Who is believed about the client; 0, the default, is nobody. */
  readonly trustedHops?: TrustedFront;
  /** Called once per request, after its last byte; for access logs and spans. */
  readonly onRequestEnd?: (record: RequestRecord) => void;
  /** Whether it is called for requests that are sampled alone. */
  readonly onlySampled?: boolean;
  /** Absent: requests are not traced, and what clients say of traces is passed on. */
  readonly tracing?: SamplingSettings | undefined;
  /** Where traffic is counted; absent: nowhere. */
  readonly traffic?: TrafficCounts | undefined;
  /** Aborting closes at once, without grace. */
  readonly signal?: AbortSignal;
}

/**
 * A number: that many proxies in front, counted from this one outwards, whose X-Forwarded-* headers
 * stay. A header: whoever connects from this machine (a tunnel's connector) names the client in it,
 * and the client's scheme in X-Forwarded-Proto; nothing else is believed.
 */
export type TrustedFront = number | { readonly clientHeader: string };

export interface BindOptions {
  readonly address: string;
  /** The address and port that a Gateway's port is bound to; by default the port itself. */
  readonly portMap?: (port: number) => number;
}

/** Limits of one thread. Times are in milliseconds; 0: no limit. */
export interface Limits {
  readonly maxConnections: number;
  readonly headerBytes: number;
  readonly headerCount: number;
  readonly bodyBytes: number;
  /**
   * From the first byte of a connection or request to the end of its header, and for a TLS
   * handshake.
   */
  readonly headerTimeoutMs: number;
  /** Between two pieces of a request body. */
  readonly bodyIdleTimeoutMs: number;
  /** For a whole request to arrive. */
  readonly requestTimeoutMs: number;
  /** Between two requests of a connection. */
  readonly keepAliveTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Until the backend's response header, unless the route says otherwise. */
  readonly backendResponseTimeoutMs: number;
  /** Between two pieces of a backend's response. */
  readonly backendIdleTimeoutMs: number;
  /** Until a client reads more of a response that waits for it. */
  readonly clientStallTimeoutMs: number;
  /** Of TLS and TCP streams without a byte in either direction. */
  readonly streamIdleTimeoutMs: number;
  readonly udpIdleTimeoutMs: number;
  /** Sessions of one UDP port; each has its own socket. */
  readonly udpSessions: number;
  readonly connectionsPerEndpoint: number;
  /** Each of them carries many requests at a time, unless the backend wants otherwise. */
  readonly http2ConnectionsPerEndpoint: number;
  readonly concurrentStreams: number;
  /**
   * Streams that an HTTP/2 client may give up on, pings and settings it may send, each within ten
   * seconds.
   */
  readonly streamResets: number;
  readonly pings: number;
  readonly settings: number;
  readonly secureContexts: number;
  /** Of a request body, kept for a retry or for a mirror that is slower than the backend. */
  readonly replayBytes: number;
}

export const defaultLimits: Limits = {
  maxConnections: 20_000,
  headerBytes: 60 * 1024,
  headerCount: 128,
  bodyBytes: 0,
  headerTimeoutMs: 10_000,
  bodyIdleTimeoutMs: 30_000,
  requestTimeoutMs: 0,
  keepAliveTimeoutMs: 60_000,
  connectTimeoutMs: 5_000,
  backendResponseTimeoutMs: 60_000,
  backendIdleTimeoutMs: 300_000,
  clientStallTimeoutMs: 300_000,
  streamIdleTimeoutMs: 3_600_000,
  udpIdleTimeoutMs: 60_000,
  udpSessions: 4_096,
  connectionsPerEndpoint: 1_024,
  http2ConnectionsPerEndpoint: 128,
  concurrentStreams: 128,
  streamResets: 200,
  pings: 100,
  settings: 50,
  secureContexts: 4_096,
  replayBytes: 64 * 1024,
};

/** What a port says of its clients takes the place of the thread's own. */
export function limitsOfPort({ clientLimits }: PortItem, limits: Limits): Limits {
  if (clientLimits === undefined) return limits;
  const { idleMs = limits.keepAliveTimeoutMs, ...others } = clientLimits;
  return { ...limits, ...others, keepAliveTimeoutMs: idleMs };
}
