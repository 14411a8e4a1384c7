import { EnvoyProcess } from "../../src/dataplanes/envoy/process/envoy-process.ts";
import { envoyBinary } from "../../test/dataplanes/support/envoy-binary.ts";

export const GATEWAY = "infra/shared";
export const DRAIN_SECONDS = 5;
/** The same for every Envoy that is measured. */
export const supervision: { readonly concurrency: number; readonly drainSeconds: number } = {
  concurrency: 1,
  drainSeconds: DRAIN_SECONDS,
};

/**
 * An Envoy for whatever serves configuration at `serverPath`; if it ends by itself, so does the
 * benchmark.
 */
export function startEnvoy(place: {
  readonly name: string;
  readonly directory: string;
  readonly serverPath: string;
}): { readonly envoy: EnvoyProcess; readonly pid: number } {
  const envoy = new EnvoyProcess({
    binary: envoyBinary(),
    gateway: GATEWAY,
    ...place,
    ...supervision,
    maxConnections: 20_000,
    extraArguments: [],
    onLine: () => {},
    onLog: () => {},
    onExit: (problem) => {
      throw new Error(problem);
    },
  });
  if (envoy.pid === undefined) throw new Error("Envoy has not started");
  return { envoy, pid: envoy.pid };
}
