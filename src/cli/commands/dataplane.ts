import { POD_VARIABLES, type PodSettings, readPodSetting } from "../../agent/environment.ts";
import type { PodPlane } from "../../agent/pod-plane.ts";
import type { RequestRecord } from "../../dataplanes/request-record.ts";
import { CannotRun, type Command, defineCommand, type Host } from "../foundation/command.ts";
import { openAccessLog } from "../run/access-log.ts";
import { createLogger } from "../run/logger.ts";

export const dataplaneCommand: Command = defineCommand({
  name: "dataplane",
  summary: "serve one Gateway as a pod of its controller",
  about: [
    "What the controller runs in the pods of a Gateway; nobody else needs it. Everything is told by environment variables: MERGEWAY_DATA_PLANE (embedded, envoy or tunnel),",
    "MERGEWAY_CONTROLLER, MERGEWAY_GATEWAY, MERGEWAY_AUTHORITY (PEM), MERGEWAY_TOKEN_FILE, MERGEWAY_STATE_DIR, MERGEWAY_ADMIN_ADDRESS, MERGEWAY_ACCESS_LOG, MERGEWAY_DRAIN_SECONDS,",
    "MERGEWAY_POD; for embedded and tunnel MERGEWAY_WORKERS; for tunnel MERGEWAY_TUNNEL_PORT and MERGEWAY_CONNECTOR_PORT; for envoy MERGEWAY_ENVOY_DIR, MERGEWAY_READINESS_PORT, MERGEWAY_DRAIN_TOKEN, MERGEWAY_TRACING_ENDPOINT, MERGEWAY_TRACING_SAMPLING and MERGEWAY_DEBUG (logs what Envoy says of refusals, with parts of all tenants' configuration).",
  ].join("\n"),
  arguments: [],
  flags: {},
  examples: [{ line: "mergeway dataplane", says: "in a pod that the controller made" }],
  exits: { 0: "stopped when it was told to", 2: "could not run" },
  async run(_input, host) {
    const logger = createLogger("json", host.err, host.now);
    const log: PodLog = (level, message) => logger[level](message);
    const { plane, close } = await makePlane(host, log);
    const { runDataPlanePod } = await import("../../agent/run-agent.ts");
    await runDataPlanePod(
      {
        controller: setting(host, "controller"),
        gateway: setting(host, "gateway"),
        authority: setting(host, "authority"),
        tokenFile: setting(host, "tokenFile"),
        stateDirectory: setting(host, "stateDirectory"),
        pod: setting(host, "pod"),
        adminAddress: setting(host, "adminAddress"),
        drainToken: setting(host, "drainToken"),
        log,
      },
      plane,
      host.signal,
    );
    await close();
    return 0;
  },
});

type PodLog = (level: "info" | "warn" | "error", message: string) => void;

interface MadePlane {
  readonly plane: PodPlane;
  /** Called after the plane has closed. */
  readonly close: () => Promise<void>;
}

async function makePlane(host: Host, log: PodLog): Promise<MadePlane> {
  const which = setting(host, "dataPlane");
  const drainSeconds = setting(host, "drainSeconds");
  const hasAccessLog = setting(host, "accessLog");
  if (which === "envoy") {
    const { envoyPodPlane } = await import("../../agent/envoy-plane.ts");
    const plane = envoyPodPlane({
      gateway: setting(host, "gateway"),
      pod: setting(host, "pod"),
      directory: setting(host, "envoyDirectory"),
      readinessPort: setting(host, "readinessPort"),
      drainSeconds,
      accessLog: hasAccessLog,
      tracing: tracingOf(host),
      isDebugged: setting(host, "debug"),
      log,
    });
    return { plane, close: async () => {} };
  }
  if (which !== "embedded" && which !== "tunnel")
    throw new CannotRun(`${POD_VARIABLES.dataPlane.name} is ${which}`, "it can be embedded, envoy or tunnel");
  const accessLog = hasAccessLog
    ? openAccessLog("-", "json", (error) =>
        log("error", `the access log cannot be written: ${error.message}`),
      )
    : undefined;
  const close = async (): Promise<void> => void (await accessLog?.close());
  const options = {
    workers: setting(host, "workers"),
    drainSeconds,
    ...(accessLog === undefined
      ? {}
      : { onRequestEnd: (record: RequestRecord): void => accessLog.write(record) }),
  };
  if (which === "tunnel") {
    const { tunnelPodPlane } = await import("../../agent/tunnel-plane.ts");
    const plane = await tunnelPodPlane({
      ...options,
      port: setting(host, "tunnelPort"),
      connectorPort: setting(host, "connectorPort"),
      now: host.now(),
    });
    return { plane, close };
  }
  const { embeddedPodPlane } = await import("../../agent/embedded-plane.ts");
  return { plane: embeddedPodPlane(options), close };
}

function tracingOf(host: Host): { readonly endpoint: string; readonly sampling: number } | undefined {
  const endpoint = setting(host, "tracingEndpoint");
  return endpoint === "" ? undefined : { endpoint, sampling: setting(host, "tracingSampling") };
}

function setting<Name extends keyof PodSettings>(host: Host, name: Name): PodSettings[Name] {
  const value = readPodSetting(host.env, name);
  if (value !== undefined) return value;
  throw new CannotRun(
    `${POD_VARIABLES[name].name} is not set`,
    "this command runs in pods that the controller makes; use `mergeway run` to serve files",
  );
}
