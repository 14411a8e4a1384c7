import type { RuleOrigin } from "../plan/rule.ts";

/**
 * One request, for the access log and for metrics. Labels of metrics: `hostname`, a pattern of the
 * plan, never the client's words.
 */
export interface RequestRecord {
  /** Milliseconds since the epoch, at the request's header. */
  readonly time: number;
  readonly client: string;
  readonly protocol: "HTTP/1.0" | "HTTP/1.1" | "HTTP/2";
  readonly method: string;
  readonly authority: string;
  readonly path: string;
  readonly requestId: string;
  readonly port: number;
  readonly listener?: string;
  /** The pattern of the host that served, or of the listener that had none. */
  readonly hostname?: string;
  readonly route?: RuleOrigin;
  readonly backend?: string;
  readonly endpoint?: string;
  /** 0 when the client left before there was one. */
  readonly status: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  readonly durationMs: number;
  /** Why this proxy itself answered, when it did. */
  readonly reason?: string;
}
