/** What `run` tells of requests: lines in a file or on standard output, spans to a collector. */
import { hostname } from "node:os";
import { DEFAULT_TEXT, textLine } from "../../dataplanes/telemetry/log-lines.ts";
import { Telemetry } from "../../dataplanes/telemetry/telemetry.ts";
import type { TelemetrySettings } from "../../dataplanes/telemetry/telemetry-settings.ts";
import type { TelemetryCounts } from "../../dataplanes/traffic/telemetry-counts.ts";
import { CannotRun, type Host } from "../foundation/command.ts";
import type { Logger } from "./logger.ts";
import type { ServeOptions } from "./serve.ts";

interface Needs {
  readonly counts: TelemetryCounts;
  readonly logger: Logger;
  readonly host: Host;
}

/** Undefined: nothing is told. */
export function startTelemetry(
  options: Pick<ServeOptions, "accessLog" | "accessLogFormat" | "logFormat" | "tracesTo" | "tracePercentage">,
  { counts, logger, host }: Needs,
): Telemetry | undefined {
  const settings = settingsOf(options);
  if (settings.accessLog === undefined && settings.tracing === undefined) return undefined;
  try {
    return new Telemetry({
      settings,
      resource: { service: "mergeway", instance: hostname(), version: host.version },
      counts,
      ...(options.accessLog === undefined || options.accessLog === "-" ? {} : { linesTo: options.accessLog }),
      onProblem: (problem) => logger.error(problem, { event: "telemetry" }),
    });
  } catch (error) {
    throw new CannotRun((error as Error).message, "name another file with --access-log");
  }
}

function settingsOf(options: Parameters<typeof startTelemetry>[0]): TelemetrySettings {
  const { accessLog, accessLogFormat, logFormat, tracesTo, tracePercentage = 100 } = options;
  const format = accessLogFormat ?? (logFormat === "json" ? "json" : DEFAULT_TEXT);
  if (format !== "json" && textLine(format) === undefined)
    throw new CannotRun(
      `the format of the access log has a field that there is not: ${format}`,
      "fields are in docs/reference/access-log.md; a percent sign is written %%",
    );
  if (tracesTo !== undefined && !/^https?:\/\/[^/]+$/.test(tracesTo))
    throw new CannotRun(
      `${tracesTo} is no address of a collector`,
      "give its scheme, host and port: http://127.0.0.1:4318",
    );
  return {
    ...(accessLog === undefined ? {} : { accessLog: { stdout: format === "json" ? {} : { text: format } } }),
    ...(tracesTo === undefined
      ? {}
      : { tracing: { otlp: { endpoint: tracesTo }, samplingPercentage: tracePercentage } }),
  };
}
