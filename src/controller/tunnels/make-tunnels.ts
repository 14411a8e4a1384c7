import type { Gateway } from "../../api/gateway.ts";
import type { Key } from "../../api/key.ts";
import type { InfrastructureCluster } from "../../infra/reconciler.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import type { EventContent, EventRecorder } from "../../status/events/events.ts";
import { GatewayTunnels, type GatewayTunnelsOptions } from "./gateway-tunnels.ts";
import { KubernetesTunnels } from "./tunnel-cluster.ts";

interface TunnelSettings {
  readonly controllerName: string;
  readonly tunnels?: { readonly apiUrl?: string };
  readonly observer: KubernetesObserver;
}

interface Surroundings extends Pick<GatewayTunnelsOptions, "find" | "onChange"> {
  readonly client: KubernetesClient;
  readonly infrastructure: InfrastructureCluster;
  readonly recorder: EventRecorder;
}

/** The controller's tunnels, wired to its cluster. */
export function makeTunnels(
  { tunnels, controllerName, observer }: TunnelSettings,
  { client, infrastructure, find, onChange, recorder }: Surroundings,
): GatewayTunnels {
  const tell = ({ apiVersion, metadata }: Gateway, content: Omit<EventContent, "type">): void => {
    const { namespace = "", name, uid } = metadata;
    recorder.record({ apiVersion, kind: "Gateway", namespace, name, uid }, { type: "Warning", ...content });
  };
  return new GatewayTunnels({
    controllerName,
    isEnabled: tunnels !== undefined,
    find,
    onChange: (gateway: Key) => onChange(gateway),
    cluster: new KubernetesTunnels(client, infrastructure),
    onStuck: (gateway, reason, note) => tell(gateway, { reason, action: "DeleteTunnel", note }),
    onForeign: (gateway, news) => tell(gateway, { ...news, action: "ConfigureTunnel" }),
    ...(tunnels?.apiUrl === undefined ? {} : { apiUrl: tunnels.apiUrl }),
    log: (level, message) => observer.log?.(level, message),
  });
}
