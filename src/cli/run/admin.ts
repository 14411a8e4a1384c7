import type { Metrics } from "../../admin/metrics/metrics.ts";
import { type AdminServer, startAdmin } from "../../admin/server/admin-server.ts";
import { DEFAULT_CONTROLLER } from "../../engine/foundation/settings.ts";
import { StateExposition } from "../../status/metrics/state-exposition.ts";
import { CannotRun, type Host } from "../foundation/command.ts";
import type { AdminPlace } from "./admin-place.ts";
import type { LiveGateway } from "./live-gateway.ts";
import type { Logger } from "./logger.ts";

interface AdminParts {
  readonly live: LiveGateway;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly host: Host;
}

export async function openAdmin(
  place: AdminPlace,
  { live, metrics, logger, host }: AdminParts,
): Promise<AdminServer> {
  const state = {
    version: host.version,
    table: live.table,
    state: () => live.state(),
    exposition: new StateExposition({
      controllerName: DEFAULT_CONTROLLER,
      resources: live.resources,
      verdicts: () => live.engine.verdicts(),
    }),
    blastRadius: (question: Parameters<LiveGateway["blastRadius"]>[0]) => live.blastRadius(question),
    isReady: () => live.isSettled && !host.signal.aborted,
    onChanges: (handler: Parameters<LiveGateway["onChanges"]>[0]) => live.onChanges(handler),
  };
  const server = await open(place, (port) => startAdmin(state, { address: place.address, port, metrics }));
  logger.info(`admin server on ${server.url}`, { event: "admin", url: server.url });
  return server;
}

async function open(place: AdminPlace, start: (port: number) => Promise<AdminServer>): Promise<AdminServer> {
  try {
    return await start(place.port);
  } catch (error) {
    if (place.isDefault && (error as NodeJS.ErrnoException).code === "EADDRINUSE") return await start(0);
    throw new CannotRun(
      `the admin server cannot listen on ${place.address}:${place.port}: ${(error as Error).message}`,
      "Use --admin-address with another address or port, or --admin-address off.",
    );
  }
}
