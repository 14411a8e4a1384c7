import type { DataPlaneName } from "../api/gateway-parameters.ts";
import type { EngineSettings } from "../engine/foundation/settings.ts";
import type { KubernetesObserver } from "../kubernetes/observer.ts";
import type { StatusObserver } from "../status/kubernetes/writer-options.ts";
import type { ControllerMetrics } from "./metrics.ts";

export interface ControllerOptions {
  /** Of this program. */
  readonly release: string;
  readonly controllerName: string;
  /** Empty for the whole cluster. */
  readonly watchNamespaces: readonly string[];
  /** Where this controller itself runs: its lease and its authority are there. */
  readonly namespace: string;
  readonly identity: string;
  readonly leaderElection: boolean;
  readonly leaseName: string;
  readonly stream: { readonly address: string; readonly port: number };
  /** `host:port` under which pods find every replica. */
  readonly streamService: string;
  /** Of Gateways whose parameters do not choose one. */
  readonly dataPlane: DataPlaneName;
  readonly dataPlaneImage: string;
  readonly envoyImage: string;
  /** Whether pods count traffic and tell it to whoever reaches them. */
  readonly dataPlaneMetrics: boolean;
  /** Whether the controller tells the state of every object to whoever reaches its metrics. */
  readonly stateMetrics: boolean;
  /** Without it, no Gateway can choose a tunnel. */
  readonly tunnels?: { readonly cloudflaredImage: string; readonly apiUrl?: string };
  readonly healthAddress: string;
  readonly metricsAddress: string;
  readonly portRange: EngineSettings["portRange"];
  readonly maxListenersPerGateway: number;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly observer: KubernetesObserver & StatusObserver;
  readonly metrics: Pick<ControllerMetrics, keyof ControllerMetrics>;
}
