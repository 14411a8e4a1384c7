import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { createEnvoyDataPlane } from "../../dataplanes/envoy/envoy-data-plane.ts";
import { CannotRun } from "../foundation/command.ts";
import { reachableAddresses } from "./addresses.ts";
import type { MakePlane } from "./served-plane.ts";

export interface EnvoyPlace {
  /** A path, or a name that is looked for on the PATH. */
  readonly program: string;
  readonly path: string;
  readonly address: string;
  readonly portOffset: number;
  readonly graceSeconds: number;
  /** Whether what Envoy says of refusals is logged, with parts of all tenants' configuration. */
  readonly isDebugged: boolean;
}

/** Serves with Envoys that this process starts and supervises, one for each Gateway. */
export function envoyPlane(place: EnvoyPlace): MakePlane {
  const binary = findProgram(place.program, place.path);
  const fact = { addresses: reachableAddresses(place.address) };
  return async ({ workers, logger, ...hooks }) => ({
    dataPlane: createEnvoyDataPlane({
      bind: { address: place.address, portMap: (port) => port + place.portOffset },
      supervise: {
        binary,
        drainSeconds: Math.max(1, place.graceSeconds),
        ...(workers === "auto" || workers === 0 ? {} : { concurrency: workers }),
      },
      ...hooks,
      onLog: (line) => logger.warn(`envoy: ${line}`, { event: "envoy" }),
      ...(place.isDebugged
        ? { onDebug: (line: string) => logger.info(`envoy: ${line}`, { event: "envoy-debug" }) }
        : {}),
    }),
    place: `${place.address}, by ${binary}`,
    infrastructureOf: () => fact,
  });
}

function findProgram(program: string, path: string): string {
  const candidates =
    isAbsolute(program) || program.includes("/")
      ? [program]
      : path.split(delimiter).map((folder) => join(folder, program));
  const found = candidates.find(isExecutable);
  if (found !== undefined) return found;
  throw new CannotRun(`Envoy is not there: ${program}`, "install it, or name its program with --envoy FILE");
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
