/**
 * Two containers: a stock Envoy serves; beside it our own program, the agent, has the plan from the
 * controller and gives it to Envoy over a socket in a volume of theirs alone. The agent is a
 * sidecar in Kubernetes' sense: it is there before Envoy starts and until Envoy has gone. Envoy's
 * image has no shell, so the kubelet asks the agent to drain it; the agent answers when nothing is
 * under way any more, and then Envoy is stopped.
 */
import { podEnvironment } from "../../agent/environment.ts";
import type { DataPlaneContext, InfrastructureRequest } from "../objects/manifest.ts";
import {
  ADMIN_PORT,
  type Container,
  drainSeconds,
  PLAN_MOUNTS,
  type PodForm,
  planContainer,
  planVolumes,
  RESTRICTED_CONTAINER,
  readinessProbe,
} from "./pod.ts";

/** What agent and Envoy share: bootstrap and sockets. */
const SHARED = "/var/run/mergeway/envoy";
const SHARED_MOUNT = { name: "envoy", mountPath: SHARED };
/**
 * Where Envoy counts requests. It is a volume of its own: when it is full because nobody reads it,
 * Envoy drops what it counts, and nothing else is missing the room.
 */
const TRAFFIC = "/var/run/mergeway/traffic";
const TRAFFIC_MOUNT = { name: "traffic", mountPath: TRAFFIC };
/** Where Envoy itself answers readiness probes. The agent has none: a pod serves without it. */
const READINESS_PORT = 19902;
/**
 * The agent keeps one plan for long and makes garbage only with changes. Left alone, V8's young
 * generation and malloc's arenas grow with the first load and never shrink: 340 MB instead of 185
 * MB at 2,500 tenants.
 */
const AGENT_MEMORY = { NODE_OPTIONS: "--max-semi-space-size=2", MALLOC_ARENA_MAX: "1" } as const;

export const envoyPod: PodForm = {
  services: "addressed",
  parts: (request, context) => ({
    initContainers: [agent(request, context)],
    containers: [envoy(request, context)],
    volumes: [
      ...planVolumes(context),
      { name: "envoy", emptyDir: { medium: "Memory", sizeLimit: "16Mi" } },
      { name: "traffic", emptyDir: { medium: "Memory", sizeLimit: trafficSize(request) } },
      // Envoy wants to write there for shared memory of its own.
      { name: "tmp", emptyDir: { medium: "Memory", sizeLimit: "16Mi" } },
    ],
  }),
};

/** A record of a request is several times as long as the line that counts it. */
function trafficSize({ parameters: { accessLog, tracing } }: InfrastructureRequest): string {
  return accessLog === undefined && tracing === undefined ? "8Mi" : "32Mi";
}

function agent(request: InfrastructureRequest, context: DataPlaneContext): Container {
  const { gateway, parameters } = request;
  return {
    name: "agent",
    ...planContainer(request, context, {
      ...AGENT_MEMORY,
      ...podEnvironment({
        dataPlane: "envoy",
        envoyDirectory: SHARED,
        trafficDirectory: TRAFFIC,
        readinessPort: READINESS_PORT,
        drainToken: context.drainToken(gateway.metadata.uid ?? ""),
      }),
    }),
    restartPolicy: "Always",
    // Envoy starts when there is something to serve. A controller may be away for long.
    startupProbe: { httpGet: { path: "/startz", port: "admin" }, periodSeconds: 1, failureThreshold: 3600 },
    resources: parameters.envoy?.agentResources ?? { requests: { cpu: "20m", memory: "128Mi" } },
    volumeMounts: [...PLAN_MOUNTS, SHARED_MOUNT, TRAFFIC_MOUNT],
  };
}

function envoy(request: InfrastructureRequest, context: DataPlaneContext): Container {
  const { gateway, parameters } = request;
  const { workers } = parameters;
  const drain = drainSeconds(request);
  return {
    name: "envoy",
    image: parameters.envoy?.image ?? context.envoyImage,
    imagePullPolicy: "IfNotPresent",
    args: [
      ...["-c", `${SHARED}/bootstrap.json`, "--disable-hot-restart", "--log-level", "warning"],
      // At `warning` this component logs every resource that it refuses, of any tenant.
      ...["--component-log-level", "config:error"],
      // Metrics are not older than this.
      ...["--file-flush-interval-msec", "1000"],
      ...["--drain-time-s", String(drain), "--parent-shutdown-time-s", String(drain + 1)],
      // Drain every connection with its next response, not at a random time within the drain time.
      ...["--drain-strategy", "immediate"],
      ...(workers === undefined || workers === 0 ? [] : ["--concurrency", String(workers)]),
    ],
    lifecycle: {
      preStop: {
        httpGet: {
          path: "/drain",
          port: ADMIN_PORT,
          httpHeaders: [
            { name: "Authorization", value: `Bearer ${context.drainToken(gateway.metadata.uid ?? "")}` },
          ],
        },
      },
    },
    ports: [{ name: "readiness", containerPort: READINESS_PORT, protocol: "TCP" }],
    readinessProbe: readinessProbe("readiness"),
    resources: parameters.resources ?? { requests: { cpu: "50m", memory: "128Mi" } },
    securityContext: RESTRICTED_CONTAINER,
    volumeMounts: [SHARED_MOUNT, TRAFFIC_MOUNT, { name: "tmp", mountPath: "/tmp" }],
  };
}
