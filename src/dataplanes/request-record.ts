import type { RuleOrigin } from "../plan/rule.ts";

/** One request, for access logs, spans and metrics. */
export interface RequestRecord {
  /** Milliseconds since the epoch, at the request's header. */
  readonly time: number;
  readonly client: string;
  readonly protocol: "HTTP/1.0" | "HTTP/1.1" | "HTTP/2";
  readonly scheme: "http" | "https";
  readonly method: string;
  readonly authority: string;
  /** As the client has sent it, without the query. */
  readonly path: string;
  readonly userAgent?: string;
  readonly requestId: string;
  /** The Gateway that served, where a process serves several. */
  readonly gateway?: string;
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
  /** How often a backend was asked; absent: at most once. */
  readonly attempts?: number;
  /** Why this proxy itself answered, when it did. */
  readonly reason?: string;
  /** Absent: requests are not traced. */
  readonly trace?: RequestTrace;
}

/** The span of a request (W3C Trace Context); ids are lower-case hexadecimal. */
export interface RequestTrace {
  readonly traceId: string;
  readonly spanId: string;
  /** The client's span, where clients' contexts count. */
  readonly parentId?: string;
  readonly isSampled: boolean;
}
