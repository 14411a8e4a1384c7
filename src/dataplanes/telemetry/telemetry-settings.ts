/** What a Gateway tells of its requests, to whom; nothing of it depends on a tenant. */

export interface TelemetrySettings {
  readonly accessLog?: AccessLogSettings;
  readonly tracing?: TracingSettings;
}

export interface AccessLogSettings {
  /** Lines on standard output; absent: none. */
  readonly stdout?: LineSettings;
  /** Log records of OpenTelemetry; absent: none. */
  readonly otlp?: CollectorSettings;
}

export interface LineSettings {
  /** A format (log-lines.ts); absent: JSON. */
  readonly text?: string;
}

/** A collector that speaks OTLP. */
export interface CollectorSettings {
  /** `http://host:port` or `https://host:port`. */
  readonly endpoint: string;
  /** HTTP when not set. */
  readonly protocol?: "HTTP" | "GRPC";
  /** PEM; absent: whom the system trusts. */
  readonly certificateAuthority?: string;
}

export interface TracingSettings extends SamplingSettings {
  readonly otlp: CollectorSettings;
}

/** How a request becomes part of a trace. */
export interface SamplingSettings {
  /** How many of 100 requests are traced; all when not set. */
  readonly samplingPercentage?: number;
  /**
   * `Ignore`, the default: every request begins a trace, and what its client says of one is
   * removed. `Continue`: the client's trace goes on; its client may have it left out, and cannot
   * have it taken in.
   */
  readonly clientContext?: "Ignore" | "Continue";
  /** Other percentages; the first that fits counts. */
  readonly overrides?: readonly SamplingOverride[];
}

/** For what one route or one object with listeners serves. */
export interface SamplingOverride {
  readonly kind: "Gateway" | "ListenerSet" | "XListenerSet" | "HTTPRoute" | "GRPCRoute";
  readonly namespace: string;
  readonly name: string;
  readonly samplingPercentage: number;
}
