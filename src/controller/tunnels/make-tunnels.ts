import type { Gateway } from "../../api/gateway.ts";
import type { Key } from "../../api/key.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import type { EventRecorder } from "../../status/kubernetes/events.ts";
import type { ControllerOptions } from "../run-controller.ts";
import { GatewayTunnels, type GatewayTunnelsOptions } from "./gateway-tunnels.ts";
import { KubernetesTunnels } from "./tunnel-cluster.ts";

/** The controller's tunnels, wired to its cluster. */
export function makeTunnels(
  { tunnels, controllerName, observer }: ControllerOptions,
  client: KubernetesClient,
  {
    find,
    onChange,
    recorder,
  }: Pick<GatewayTunnelsOptions, "find" | "onChange"> & { readonly recorder: EventRecorder },
): GatewayTunnels {
  return new GatewayTunnels({
    controllerName,
    isEnabled: tunnels !== undefined,
    find,
    onChange: (gateway: Key) => onChange(gateway),
    cluster: new KubernetesTunnels(client),
    onStuck: ({ apiVersion, metadata }: Gateway, reason, note) => {
      const { namespace = "", name, uid } = metadata;
      recorder.record(
        { apiVersion, kind: "Gateway", namespace, name, uid },
        { type: "Warning", reason, action: "DeleteTunnel", note },
      );
    },
    ...(tunnels?.apiUrl === undefined ? {} : { apiUrl: tunnels.apiUrl }),
    log: (level, message) => observer.log?.(level, message),
  });
}
