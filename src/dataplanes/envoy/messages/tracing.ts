/**
 * Spans of requests, by OTLP over gRPC (envoy.config.trace.v3, and its place in the connection
 * manager).
 */

import { double, type Message, message, nested, text } from "../wire/protobuf.ts";
import { any } from "./core.ts";

export interface TracingShape {
  /** Where spans go. */
  readonly cluster: string;
  /** What the spans are said to be of. */
  readonly service: string;
  /** In percent. */
  readonly sampling: number;
}

export function openTelemetry({ cluster, service, sampling }: TracingShape): Message {
  const config = message(nested(1, message(nested(1, message(text(1, cluster))))), text(2, service));
  const provider = message(
    text(1, "envoy.tracers.opentelemetry"),
    nested(3, any("envoy.config.trace.v3.OpenTelemetryConfig", config)),
  );
  // No client can have its own requests traced by a header of Envoy's. Envoy believes a request id
  // that comes through trusted proxies, and draws last of all from those that are to be traced.
  return message(
    nested(3, percent(0)),
    nested(4, percent(100)),
    nested(5, percent(sampling)),
    nested(9, provider),
  );
}

function percent(value: number): Message {
  return message(double(1, value));
}
