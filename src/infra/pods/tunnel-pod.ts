/**
 * Two containers: our own program routes, on loopback alone, and stock cloudflared beside it brings
 * the requests. Nobody connects to such a pod, so it has no address; a headless Service is there
 * because its endpoints tell whether a connector is connected.
 */
import { podEnvironment } from "../../agent/environment.ts";
import type { DataPlaneContext, InfrastructureRequest, TunnelCredentials } from "../objects/manifest.ts";
import {
  type Container,
  drainSeconds,
  PLAN_MOUNTS,
  type PodForm,
  planContainer,
  planVolumes,
  RESTRICTED_CONTAINER,
  readinessProbe,
} from "./pod.ts";

/** On the pod's loopback: where the tunnel leads. The next one is for gRPC. */
export const TUNNEL_PORT = 8080;
/** On the pod's loopback: where cloudflared says how it is. */
const CONNECTOR_PORT = 19902;

export const tunnelPod: PodForm = {
  services: "headless",
  parts: (request, context) =>
    // Without a token there is nothing that a pod could connect with.
    request.tunnel === undefined
      ? undefined
      : {
          containers: [proxy(request, context), connector(request, context, request.tunnel)],
          volumes: planVolumes(context),
        },
};

function proxy(request: InfrastructureRequest, context: DataPlaneContext): Container {
  const { workers, resources } = request.parameters;
  return {
    name: "gateway",
    ...planContainer(
      request,
      context,
      podEnvironment({
        dataPlane: "tunnel",
        workers: workers ?? 0,
        tunnelPort: TUNNEL_PORT,
        connectorPort: CONNECTOR_PORT,
      }),
    ),
    readinessProbe: readinessProbe("admin"),
    resources: resources ?? { requests: { cpu: "50m", memory: "128Mi" } },
    volumeMounts: PLAN_MOUNTS,
  };
}

function connector(
  request: InfrastructureRequest,
  context: DataPlaneContext,
  { secret, key, digest }: TunnelCredentials,
): Container {
  const { protocol = "http2", connections, image, resources } = request.parameters.tunnel ?? {};
  return {
    name: "cloudflared",
    image: image ?? context.cloudflaredImage,
    imagePullPolicy: "IfNotPresent",
    args: [
      ...["tunnel", "--no-autoupdate", "--protocol", protocol, "--metrics", `127.0.0.1:${CONNECTOR_PORT}`],
      ...(connections === undefined ? [] : ["--ha-connections", String(connections)]),
      "run",
    ],
    env: [
      { name: "TUNNEL_TOKEN", valueFrom: { secretKeyRef: { name: secret, key } } },
      { name: "TUNNEL_GRACE_PERIOD", value: `${drainSeconds(request)}s` },
      // Another token means other pods.
      { name: "MERGEWAY_TOKEN_DIGEST", value: digest },
    ],
    resources: resources ?? { requests: { cpu: "20m", memory: "48Mi" } },
    securityContext: RESTRICTED_CONTAINER,
  };
}
