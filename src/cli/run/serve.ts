/** Serves a folder of manifests until the process is told to stop. */
import { access, constants } from "node:fs/promises";
import { Metrics } from "../../admin/metrics/metrics.ts";
import { kindOf } from "../../api/key.ts";
import { watchPlan } from "../../dataplanes/telemetry/watch-plan.ts";
import { FileSource } from "../../sources/files/file-source.ts";
import { pathError } from "../../sources/files/path-error.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { statusTable } from "../status/status-table.ts";
import { openAdmin } from "./admin.ts";
import type { AdminPlace } from "./admin-place.ts";
import { logChanges } from "./change-lines.ts";
import { FindingLog } from "./finding-lines.ts";
import { LiveGateway } from "./live-gateway.ts";
import { createLogger, type LogFormat, type Logger } from "./logger.ts";
import { OwnEndpoints } from "./own-endpoints.ts";
import { embeddedPlane, type MakePlane } from "./served-plane.ts";
import { StatusFiles } from "./status-files.ts";
import { startTelemetry } from "./telemetry.ts";

export interface ServeOptions {
  readonly paths: readonly string[];
  readonly address: string;
  readonly portOffset: number;
  readonly workers: number | "auto";
  readonly logFormat: LogFormat;
  /** A file, or `-` for standard output. */
  readonly accessLog: string | undefined;
  /** `json`, or a format; undefined: as events are logged. */
  readonly accessLogFormat?: string | undefined;
  /** Of a collector; undefined: there are no traces. */
  readonly tracesTo?: string | undefined;
  readonly tracePercentage?: number;
  /** Undefined for none. */
  readonly admin: AdminPlace | undefined;
  readonly statusDirectory: string | undefined;
  readonly graceSeconds: number;
  /** What serves, if not the embedded data plane on the ports of this machine. */
  readonly makePlane?: MakePlane;
  /** Called once everything that was there at the start is served, or known not to be. */
  onSettled?(live: LiveGateway, adminUrl: string | undefined): void;
}

/** Rows of the table at the start; beyond it, `mergeway status` is the better place to look. */
const TABLE_ROWS = 100;
/** Somebody waits for the table even when a data plane takes its time. */
const SETTLE_LIMIT_MS = 5_000;

export async function serve(options: ServeOptions, host: Host): Promise<ExitCode> {
  await checkPaths(options.paths);
  const logger = createLogger(options.logFormat, host.err, host.now);
  const metrics = new Metrics(host.version);
  const telemetry = startTelemetry(options, { counts: metrics.traffic.telemetry, logger, host });
  const plane = await (options.makePlane ?? embeddedPlane(options.address, options.portOffset))({
    workers: options.workers,
    logger,
    traffic: metrics.traffic,
    ...telemetry?.hooks,
  });
  const statusFiles =
    options.statusDirectory === undefined
      ? undefined
      : new StatusFiles({ directory: options.statusDirectory, logger, now: host.now });
  const own = new OwnEndpoints();
  const live = new LiveGateway(
    telemetry === undefined ? plane.dataPlane : watchPlan(plane.dataPlane, (delta) => telemetry.apply(delta)),
    (gateway) => plane.infrastructureOf(gateway),
    (key) => statusFiles?.earlier(key),
    own.refused,
  );
  plane.onInfrastructure?.((gateway) => live.takeInfrastructure(gateway));
  const admin = options.admin && (await openAdmin(options.admin, { live, metrics, logger, host }));
  if (admin !== undefined) own.reserve(Number(new URL(admin.url).port));
  let started = false;
  live.onStep(({ verdicts, changes }) => {
    metrics.countChanges(changes);
    statusFiles?.update(verdicts, live.resources);
    if (started) logChanges(changes, logger);
  });
  void startOf(live, host.signal).then(() => {
    started = true;
    if (host.signal.aborted) return;
    tellStart(live, { ...options, place: plane.place }, logger, host);
    options.onSettled?.(live, admin?.url);
  });

  const findings = new FindingLog(logger);
  const source = new FileSource(options.paths, {
    onSettled: (settled) => {
      metrics.setSourceErrors(settled.errors.length);
      findings.tell(settled);
    },
  });
  await source.run((changes) => {
    live.take(changes);
    for (const { key, resource } of changes) {
      if (resource === undefined && kindOf(key) === "Gateway") plane.removed?.(key);
    }
  }, host.signal);

  logger.info(`stopping: requests in flight have ${options.graceSeconds} s to finish`, { event: "stopping" });
  await plane.dataPlane.close({ graceMs: options.graceSeconds * 1000 });
  await admin?.close();
  await statusFiles?.written();
  await telemetry?.close();
  logger.info("stopped", { event: "stopped" });
  return 0;
}

async function startOf(live: LiveGateway, signal: AbortSignal): Promise<void> {
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  await Promise.race([live.loaded, stopped]);
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, SETTLE_LIMIT_MS);
  });
  await Promise.race([live.settled, limit, stopped]);
  clearTimeout(timer);
}

function tellStart(
  live: LiveGateway,
  { paths, logFormat, place }: ServeOptions & { readonly place: string },
  logger: Logger,
  host: Host,
): void {
  const state = live.state();
  const listeners = state.gateways.flatMap(({ owners }) => owners.flatMap((owner) => owner.listeners));
  const serving = listeners.filter((listener) => listener.state === "serving").length;
  if (logFormat === "pretty") host.out.write(`\n${statusTable(state, host.out, { limit: TABLE_ROWS })}\n`);
  logger.info(`${paths.join(", ")}: ${serving} of ${listeners.length} listeners served on ${place}`, {
    event: "started",
    listeners: listeners.length,
    serving,
  });
}

/** A path that does not exist is a mistake at the start, and an event later. */
async function checkPaths(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    try {
      await access(path, constants.R_OK);
    } catch (error) {
      const { message, remedy } = pathError(path, error);
      throw new CannotRun(`${path}: ${message}`, remedy);
    }
  }
}
