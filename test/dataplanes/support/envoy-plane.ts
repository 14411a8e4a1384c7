import {
  createEnvoyDataPlane,
  type EnvoyDataPlane,
  type EnvoyOptions,
} from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { envoyBinary } from "./envoy-binary.ts";
import type { PlaneOptions } from "./plane-under-test.ts";

// While the file is read, so that no test's time limit counts the download.
const binary = envoyBinary();

/**
 * Envoys as tests want them: one thread, short drains, and every field that Envoy does not know is
 * an error.
 */
export function createEnvoy(
  { bind, trustedHops, onRequestEnd, onlySampled = false, tracing, signal, traffic }: PlaneOptions,
  more: Omit<EnvoyOptions, "bind"> = {},
): EnvoyDataPlane {
  return createEnvoyDataPlane({
    bind,
    ...(typeof trustedHops === "number" ? { trustedHops } : {}),
    ...(onRequestEnd === undefined ? {} : { onRequestEnd }),
    onlySampled,
    tracing,
    ...(traffic === undefined ? {} : { traffic }),
    ...(signal === undefined ? {} : { signal }),
    ...(process.env["ENVOY_LOG"] === undefined ? {} : { onLog: (line) => console.log(line) }),
    supervise: {
      binary,
      concurrency: 1,
      drainSeconds: 1,
      extraArguments: ["--reject-unknown-dynamic-fields"],
    },
    ...more,
  });
}
