/** Builds the parts of the controller that need many options. Elsewhere they are wired. */
import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import { readAuthorities, readKeyPair } from "../certificates/read.ts";
import { TOKEN_AUDIENCE } from "../dataplanes/remote/protocol/protocol.ts";
import { PlanPublisher, type PlanPublisherOptions } from "../dataplanes/remote/publisher/plan-publisher.ts";
import type { EngineSettings } from "../engine/foundation/settings.ts";
import type { DataPlaneContext } from "../infra/objects/manifest.ts";
import { RESERVED_PORTS } from "../infra/objects/names.ts";
import { InfrastructureReconciler, type ReconcilerOptions } from "../infra/reconciler.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";
import { refusedInCluster } from "../kubernetes/special-addresses.ts";
import { announcer } from "../status/events/announcements.ts";
import type { EventRecorder } from "../status/events/events.ts";
import type { RenderingOptions } from "../status/kubernetes/desired-status.ts";
import type { InstalledApi } from "../status/kubernetes/gateway-class.ts";
import { StatusWriter } from "../status/kubernetes/writer.ts";
import type { ControllerOptions } from "./controller-options.ts";
import { dataPlanesOf, featuresOfPlane } from "./data-planes.ts";
import { dataPlaneOfClass, supportedFeatures } from "./features.ts";

/** What a controller is given beside its options. */
export interface Surroundings extends Pick<DataPlaneContext, "authority" | "drainToken"> {
  readonly client: KubernetesClient;
  /** The same in every replica, and nothing that a tenant could compute. */
  readonly referenceOf: NonNullable<EngineSettings["referenceOf"]>;
}

export function engineSettings(
  options: ControllerOptions,
  { referenceOf }: Pick<Surroundings, "referenceOf">,
): EngineSettings {
  return {
    controllerName: options.controllerName,
    adoptUnknownClasses: false,
    assumeProgrammed: false,
    features: featuresOfPlane(options.dataPlane),
    dataPlanes: dataPlanesOf(options),
    portRange: options.portRange,
    reservedPorts: RESERVED_PORTS,
    maxListenersPerGateway: options.maxListenersPerGateway,
    readKeyPair,
    readAuthorities,
    refusedEndpoint: refusedInCluster,
    referenceOf,
  };
}

export function buildPublisher(
  { dataPlane, release, metrics, observer }: ControllerOptions,
  { since, onConfirmed }: Required<Pick<PlanPublisherOptions, "since" | "onConfirmed">>,
): PlanPublisher {
  return new PlanPublisher({
    features: featuresOfPlane(dataPlane),
    release,
    onReplicas: (gateway, connected) => {
      metrics.replicas(gateway, connected);
      observer.log?.("info", `Gateway ${gateway}: ${connected} replicas connected`);
    },
    onConfirmed: (gateway, confirmed) => {
      const { replicas, lagging } = confirmed;
      observer.log?.("info", `Gateway ${gateway}: ${lagging.length} of ${replicas} replicas lag`, {
        lagging,
      });
      onConfirmed(gateway, confirmed);
    },
    since,
    onProgress: (stage, seconds) => metrics.propagated(stage, seconds),
  });
}

/** What statuses of GatewayClasses say beyond their verdicts. */
export function classContents(
  options: ControllerOptions,
  find: (key: Key) => Resource | undefined,
  installed: () => InstalledApi,
): Pick<RenderingOptions, "features" | "installed"> {
  return {
    features: (name) => {
      const chosen = dataPlaneOfClass(name, find) ?? options.dataPlane;
      const features = dataPlanesOf(options)[chosen] ?? featuresOfPlane(options.dataPlane);
      return new Set(supportedFeatures(features, chosen));
    },
    installed,
  };
}

export function buildStatusWriter(
  options: ControllerOptions,
  {
    client,
    recorder,
    classes,
  }: {
    readonly client: KubernetesClient;
    readonly recorder: EventRecorder;
    readonly classes: ReturnType<typeof classContents>;
  },
): StatusWriter {
  const writer: StatusWriter = new StatusWriter({
    client,
    controllerName: options.controllerName,
    ...classes,
    ...announcer(recorder, (key) => writer.live(key)),
    observer: options.observer,
  });
  return writer;
}

export function buildInfrastructure(
  options: ControllerOptions,
  { authority, drainToken }: Surroundings,
  wires: Pick<ReconcilerOptions, "cluster" | "find" | "tunnels" | "onFact">,
): InfrastructureReconciler {
  return new InfrastructureReconciler({
    ...wires,
    context: () => ({
      dataPlane: options.dataPlane,
      image: options.dataPlaneImage,
      envoyImage: options.envoyImage,
      cloudflaredImage: options.tunnels?.cloudflaredImage ?? "",
      controller: options.streamService,
      authority,
      tokenAudience: TOKEN_AUDIENCE,
      metrics: options.dataPlaneMetrics,
      drainToken,
    }),
    onProblem: (gateway, problem) => {
      options.metrics.infrastructureFailed();
      options.observer.log?.("warn", `${gateway}: ${problem}`);
    },
  });
}
