import { POD_VARIABLES, type PodSettings, readPodSetting } from "../../agent/environment.ts";
import type { PodPlane } from "../../agent/pod-plane.ts";
import type { Telemetry } from "../../dataplanes/telemetry/telemetry.ts";
import type { TrafficCounts } from "../../dataplanes/traffic/traffic-counts.ts";
import { CannotRun, type Command, defineCommand, type Host } from "../foundation/command.ts";
import { createLogger } from "../run/logger.ts";

export const dataplaneCommand: Command = defineCommand({
  name: "dataplane",
  summary: "serve one Gateway as a pod of its controller",
  about: [
    "What the controller runs in the pods of a Gateway; nobody else needs it. Everything is told by environment variables: MERGEWAY_DATA_PLANE (embedded, envoy or tunnel),",
    "MERGEWAY_CONTROLLER, MERGEWAY_GATEWAY, MERGEWAY_AUTHORITY (PEM), MERGEWAY_TOKEN_FILE, MERGEWAY_STATE_DIR, MERGEWAY_ADMIN_ADDRESS, MERGEWAY_TELEMETRY (JSON), MERGEWAY_DRAIN_SECONDS, MERGEWAY_METRICS,",
    "MERGEWAY_POD; for embedded and tunnel MERGEWAY_WORKERS; for tunnel MERGEWAY_TUNNEL_PORT and MERGEWAY_CONNECTOR_PORT; for envoy MERGEWAY_ENVOY_DIR, MERGEWAY_TRAFFIC_DIR, MERGEWAY_READINESS_PORT, MERGEWAY_DRAIN_TOKEN and MERGEWAY_DEBUG (logs what Envoy says of refusals, with parts of all tenants' configuration).",
  ].join("\n"),
  arguments: [],
  flags: {},
  examples: [{ line: "mergeway dataplane", says: "in a pod that the controller made" }],
  exits: { 0: "stopped when it was told to", 2: "could not run" },
  async run(_input, host) {
    const logger = createLogger("json", host.err, host.now);
    const log: PodLog = (level, message) => logger[level](message);
    const { PodMetrics } = await import("../../agent/metrics.ts");
    const metrics = setting(host, "metrics") ? new PodMetrics(host.version) : undefined;
    const { plane, telemetry } = await makePlane(host, log, metrics?.traffic);
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
        workers: setting(host, "workers"),
        drainToken: setting(host, "drainToken"),
        metrics,
        onPlan: (delta) => telemetry?.apply(delta),
        log,
      },
      plane,
      host.signal,
    );
    await telemetry?.close();
    return 0;
  },
});

type PodLog = (level: "info" | "warn" | "error", message: string) => void;

interface MadePlane {
  readonly plane: PodPlane;
  /** Outlives the plane: it tells of its last requests. */
  readonly telemetry: Telemetry | undefined;
}

async function makePlane(host: Host, log: PodLog, traffic: TrafficCounts | undefined): Promise<MadePlane> {
  const which = setting(host, "dataPlane");
  const drainSeconds = setting(host, "drainSeconds");
  const telemetry = await telemetryOf(host, log, traffic);
  const made = (plane: PodPlane): MadePlane => ({ plane, telemetry });
  if (which === "envoy") {
    const { envoyPodPlane } = await import("../../agent/envoy-plane.ts");
    return made(
      envoyPodPlane({
        gateway: setting(host, "gateway"),
        pod: setting(host, "pod"),
        directory: setting(host, "envoyDirectory"),
        readinessPort: setting(host, "readinessPort"),
        drainSeconds,
        traffic,
        trafficDirectory: setting(host, "trafficDirectory"),
        ...(telemetry === undefined
          ? {}
          : { ...telemetry.hooks, onMissing: (requests: number) => telemetry.missed(requests) }),
        isDebugged: setting(host, "debug"),
        log,
      }),
    );
  }
  if (which !== "embedded" && which !== "tunnel")
    throw new CannotRun(`${POD_VARIABLES.dataPlane.name} is ${which}`, "it can be embedded, envoy or tunnel");
  const options = { workers: setting(host, "workers"), drainSeconds, traffic, ...telemetry?.hooks };
  if (which === "tunnel") {
    const { tunnelPodPlane } = await import("../../agent/tunnel-plane.ts");
    const [port, connectorPort] = [setting(host, "tunnelPort"), setting(host, "connectorPort")];
    return made(await tunnelPodPlane({ ...options, port, connectorPort, now: host.now() }));
  }
  const { embeddedPodPlane } = await import("../../agent/embedded-plane.ts");
  return made(embeddedPodPlane(options));
}

async function telemetryOf(
  host: Host,
  log: PodLog,
  traffic: TrafficCounts | undefined,
): Promise<Telemetry | undefined> {
  const settings = setting(host, "telemetry");
  if (settings.accessLog === undefined && settings.tracing === undefined) return undefined;
  const { Telemetry } = await import("../../dataplanes/telemetry/telemetry.ts");
  const { TelemetryCounts } = await import("../../dataplanes/traffic/telemetry-counts.ts");
  return new Telemetry({
    settings,
    resource: { service: setting(host, "gateway"), instance: setting(host, "pod"), version: host.version },
    counts: traffic?.telemetry ?? new TelemetryCounts(),
    onProblem: (problem) => log("warn", problem),
  });
}

function setting<Name extends keyof PodSettings>(host: Host, name: Name): PodSettings[Name] {
  const value = readPodSetting(host.env, name);
  if (value !== undefined) return value;
  throw new CannotRun(
    `${POD_VARIABLES[name].name} is not set`,
    "this command runs in pods that the controller makes; use `mergeway run` to serve files",
  );
}
