/**
 * Wires the parts of the controller. Every replica watches, computes and publishes the plan. Only
 * the leader writes statuses, Events and infrastructure. It needs nothing but a client of the API
 * server; run-controller.ts opens the streams to pods.
 */
import type { EndpointSlice } from "../api/core.ts";
import { readAuthorities, readKeyPair } from "../certificates/read.ts";
import { TOKEN_AUDIENCE } from "../dataplanes/remote/protocol/protocol.ts";
import { PlanPublisher } from "../dataplanes/remote/publisher/plan-publisher.ts";
import { Engine } from "../engine/engine.ts";
import { gatewayOfItem } from "../engine/foundation/item-ids.ts";
import type { EngineSettings } from "../engine/foundation/settings.ts";
import { GatewayNames } from "../infra/gateway-names.ts";
import { GatewayPods } from "../infra/gateway-pods.ts";
import type { DataPlaneContext } from "../infra/objects/manifest.ts";
import { RESERVED_PORTS } from "../infra/objects/names.ts";
import { InfrastructureReconciler } from "../infra/reconciler.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";
import { runLeaderElection } from "../kubernetes/lease.ts";
import { refusedInCluster } from "../kubernetes/special-addresses.ts";
import { KubernetesSource } from "../sources/kubernetes/source.ts";
import { announcer } from "../status/events/announcements.ts";
import { EventRecorder } from "../status/events/events.ts";
import type { InstalledApi } from "../status/kubernetes/gateway-class.ts";
import { StatusWriter } from "../status/kubernetes/writer.ts";
import { ClusterInfrastructure } from "./cluster-infrastructure.ts";
import type { ControllerOptions } from "./controller-options.ts";
import { DATA_PLANES, DATA_PLANES_WITH_TUNNEL, featuresOfPlane } from "./data-planes.ts";
import { dataPlaneOfClass, supportedFeatures } from "./features.ts";
import { ControllerFlow } from "./flow.ts";
import { makeTunnels } from "./tunnels/make-tunnels.ts";

/** What a controller is given beside its options. */
export interface Surroundings extends Pick<DataPlaneContext, "authority" | "drainToken"> {
  readonly client: KubernetesClient;
}

export interface Controller {
  readonly publisher: PlanPublisher;
  readonly names: GatewayNames;
  /** Whether it has seen all that there is once. */
  readonly isSynced: boolean;
  /** Watches, computes and, while it leads, writes, until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

const NOTHING_KNOWN: InstalledApi = { bundleVersions: [], isKnown: false };

export function assembleController(options: ControllerOptions, surroundings: Surroundings): Controller {
  const { observer, controllerName, metrics } = options;
  const { client } = surroundings;
  const features = featuresOfPlane(options.dataPlane);
  const dataPlanes = dataPlanesOf(options);
  const state: { synced: boolean; installed: InstalledApi } = { synced: false, installed: NOTHING_KNOWN };
  const names: GatewayNames = new GatewayNames((key) => flow.resources.get(key));
  const publisher = new PlanPublisher({
    features,
    release: options.release,
    onReplicas: (gateway, connected) => {
      metrics.replicas(gateway, connected);
      observer.log?.("info", `Gateway ${gateway}: ${connected} replicas connected`);
    },
    onConfirmed: (gateway, confirmed) => {
      const { replicas, lagging } = confirmed;
      observer.log?.("info", `Gateway ${gateway}: ${lagging.length} of ${replicas} replicas lag`, {
        lagging,
      });
      flow.learnReplicas(`Gateway/${gateway}`, confirmed);
    },
    since: () => flow.since,
    onProgress: (stage, seconds) => metrics.propagated(stage, seconds),
  });
  const pods = new GatewayPods((gateway, found) => publisher.expect(gateway, found));
  const engine = new Engine(engineSettings(options));
  const recorder = new EventRecorder({ client, controllerName, instance: options.identity, observer });
  const writer: StatusWriter = new StatusWriter({
    client,
    controllerName,
    features: (name) => {
      const chosen = dataPlaneOfClass(name, (key) => flow.resources.get(key)) ?? options.dataPlane;
      return new Set(supportedFeatures(dataPlanes[chosen] ?? features, chosen));
    },
    installed: () => state.installed,
    ...announcer(recorder, (key) => writer.live(key)),
    observer,
  });
  const tunnels = makeTunnels(options, client, {
    find: (key) => names.find(key),
    recorder,
    onChange: (gateway) => infrastructure.noticeTunnel(gateway),
  });
  const flow: ControllerFlow = new ControllerFlow({
    engine,
    dataPlane: publisher,
    onPlan: (plan) => {
      tunnels.follow(plan);
      for (const { type, gateway } of plan.upserts) if (type === "gateway") pods.serve(gateway);
      for (const id of plan.removes) if (id.startsWith("gateway:")) pods.release(gatewayOfItem(id));
    },
    onVerdicts: (verdicts, since) => writer.judge(verdicts, since),
    timed: (step) => metrics.timed(step),
  });
  const infrastructure: InfrastructureReconciler = new InfrastructureReconciler({
    cluster: new ClusterInfrastructure(client, options.watchNamespaces),
    context: () => ({
      dataPlane: options.dataPlane,
      image: options.dataPlaneImage,
      envoyImage: options.envoyImage,
      cloudflaredImage: options.tunnels?.cloudflaredImage ?? "",
      controller: options.streamService,
      authority: surroundings.authority,
      tokenAudience: TOKEN_AUDIENCE,
      drainToken: surroundings.drainToken,
    }),
    find: (key) => names.find(key),
    tunnels,
    onFact: (gateway, fact) => flow.learnAddresses(gateway, fact),
    onProblem: (gateway, problem) => {
      metrics.infrastructureFailed();
      observer.log?.("warn", `${gateway}: ${problem}`);
    },
  });
  metrics.read({
    backlog: () => writer.backlog,
    lags: () => publisher.lags,
    confirmed: () => publisher.confirmed,
    eventsDropped: () => recorder.dropped,
  });
  flow.connect(infrastructure);
  const source = new KubernetesSource({
    client,
    controllerName,
    ...(options.watchNamespaces.length === 0 ? {} : { namespaces: options.watchNamespaces }),
    onInstallation: (installation) => {
      state.installed = installation;
      writer.reconsiderInstallation();
    },
    observer,
  });
  return {
    publisher,
    names,
    get isSynced() {
      return state.synced;
    },
    async run(signal) {
      const { promise: synced, resolve: markSynced } = Promise.withResolvers<void>();
      const watching = source.run((changes, since) => {
        writer.observe(changes);
        for (const { key, resource } of changes) names.notice(key, resource);
        for (const { key, resource } of changes) tunnels.notice(key, resource);
        for (const { key, resource } of changes)
          if (key.startsWith("EndpointSlice/")) pods.notice(key, resource as EndpointSlice | undefined);
        flow.take(changes, state.synced ? since : undefined);
        if (changes.some(({ key }) => key.startsWith("GatewayParameters/"))) writer.reconsiderClasses();
        state.synced = true;
        markSynced();
      }, signal);
      await Promise.race([synced, watching]);
      await whileLeading(options, client, signal, async (leading) => {
        metrics.leading(true);
        publisher.lead(true);
        try {
          await infrastructure.lead(true);
          await tunnels.lead(true);
          await writer.run(leading);
        } finally {
          // After any failure: a replica that does not lead must not write.
          publisher.lead(false);
          await tunnels.lead(false);
          await infrastructure.lead(false);
          metrics.leading(false);
        }
      });
      await watching;
      await publisher.close();
    },
  };
}

export function engineSettings(options: ControllerOptions): EngineSettings {
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
  };
}

function dataPlanesOf({ tunnels }: ControllerOptions): typeof DATA_PLANES {
  return tunnels === undefined ? DATA_PLANES : DATA_PLANES_WITH_TUNNEL;
}

/** Runs the leader's work while this replica leads: always, where there is no election. */
async function whileLeading(
  options: ControllerOptions,
  client: KubernetesClient,
  signal: AbortSignal,
  work: (leading: AbortSignal) => Promise<void>,
): Promise<void> {
  if (!options.leaderElection) return work(signal);
  await runLeaderElection(
    {
      client,
      namespace: options.namespace,
      name: options.leaseName,
      identity: options.identity,
      onElected: work,
      observer: options.observer,
    },
    signal,
  );
}
