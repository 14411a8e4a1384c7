/**
 * Traces of requests (envoy.config.trace.v3, and its places in connection manager and routes).
 *
 * Envoy draws who is sampled and tells backends of it. It reports nothing itself: the agent makes
 * spans of the log's lines, the same as the embedded data plane does (decision 43).
 */

import * as proto from "../wire/proto.ts";
import { double, enumValue, type Message, message, nested, text, uint } from "../wire/protobuf.ts";
import { any, MILLION, uint32Value } from "./core.ts";

export interface TracingShape {
  /** Where Envoy would report to: it wants a cluster, and has one without endpoints. */
  readonly cluster: string;
  /** What the spans are said to be of. */
  readonly service: string;
  /** In percent. */
  readonly sampling: number;
}

export function openTelemetry({ cluster, service, sampling }: TracingShape): Message<proto.Tracing> {
  const collector = message(
    nested(proto.GrpcService.envoyGrpc, message(text(proto.EnvoyGrpc.clusterName, cluster))),
  );
  const config = message(
    nested(proto.OpenTelemetryConfig.grpcService, collector),
    text(proto.OpenTelemetryConfig.serviceName, service),
    // What is over the limit is dropped before it costs anything.
    uint32Value(proto.OpenTelemetryConfig.maxCacheSize, 1),
  );
  const provider = message(
    text(proto.TracingProvider.name, "envoy.tracers.opentelemetry"),
    nested(proto.TracingProvider.typedConfig, any("envoy.config.trace.v3.OpenTelemetryConfig", config)),
  );
  // No client can have its own requests traced by a header of Envoy's. Envoy believes a request id
  // that comes through trusted proxies, and draws last of all from those that are to be traced.
  return message(
    nested(proto.Tracing.clientSampling, percent(0)),
    nested(proto.Tracing.randomSampling, percent(100)),
    nested(proto.Tracing.overallSampling, percent(sampling)),
    nested(proto.Tracing.provider, provider),
  );
}

/** Another percentage for what a route serves. */
export function routeTracing(sampling: number): Message<proto.RouteTracing> {
  return message(
    nested(proto.RouteTracing.clientSampling, millionths(0)),
    nested(proto.RouteTracing.randomSampling, millionths(100)),
    nested(proto.RouteTracing.overallSampling, millionths(sampling)),
  );
}

function percent(value: number): Message<proto.Percent> {
  return message(double(proto.Percent.value, value));
}

function millionths(value: number): Message<proto.FractionalPercent> {
  return message(
    uint(proto.FractionalPercent.numerator, Math.round((value * MILLION) / 100)),
    enumValue(proto.FractionalPercent.denominator, proto.DenominatorType.MILLION),
  );
}
