import type { SamplingSettings } from "../../telemetry/telemetry-settings.ts";
import { percentageOf } from "../../telemetry/trace-context.ts";
import type { PortTracing } from "../compile/http-listener.ts";
import type { RouteTracingOf } from "../compile/model.ts";
import { openTelemetry, routeTracing } from "../messages/tracing.ts";
import { SPANS } from "../process/bootstrap.ts";

/** How a Gateway's Envoys trace: one setting for all ports, and others for single routes. */
export function gatewayTracing(
  gateway: string,
  settings: SamplingSettings | undefined,
): { readonly tracing?: PortTracing; readonly routeTracing?: RouteTracingOf } {
  if (settings === undefined) return {};
  const { samplingPercentage: sampling = 100, clientContext, overrides = [] } = settings;
  const tracing = {
    manager: openTelemetry({ cluster: SPANS, service: gateway, sampling }),
    continuesClients: clientContext === "Continue",
  };
  if (overrides.length === 0) return { tracing };
  return {
    tracing,
    routeTracing: ({ owner }, route) => {
      const own = percentageOf(settings, { owner, route });
      return own === sampling ? undefined : routeTracing(own);
    },
  };
}
