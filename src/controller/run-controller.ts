/**
 * The controller, wired: one screen that shows who speaks to whom. Every replica watches, computes and serves the plan; the leader alone writes statuses, events and
 * infrastructure.
 */
import type { EndpointSlice } from "../api/core.ts";
import type { DataPlaneName } from "../api/gateway-parameters.ts";
import { readAuthorities, readKeyPair } from "../certificates/read.ts";
import { PlanServer } from "../dataplanes/remote/plan-server.ts";
import { TOKEN_AUDIENCE } from "../dataplanes/remote/protocol.ts";
import { Engine } from "../engine/engine.ts";
import { gatewayOfItem } from "../engine/item-ids.ts";
import type { EngineSettings } from "../engine/settings.ts";
import { ensureAuthority, tokenFor } from "../infra/authority.ts";
import { GatewayNames } from "../infra/gateway-names.ts";
import { GatewayPods } from "../infra/gateway-pods.ts";
import { RESERVED_PORTS } from "../infra/names.ts";
import { InfrastructureReconciler } from "../infra/reconciler.ts";
import { createKubernetesClient, type KubernetesClient } from "../kubernetes/client.ts";
import { runLeaderElection } from "../kubernetes/lease.ts";
import type { KubernetesObserver } from "../kubernetes/observer.ts";
import { KubernetesSource } from "../sources/kubernetes/source.ts";
import { announcer } from "../status/kubernetes/announcements.ts";
import { EventRecorder } from "../status/kubernetes/events.ts";
import type { InstalledApi } from "../status/kubernetes/gateway-class.ts";
import { type StatusObserver, StatusWriter } from "../status/kubernetes/writer.ts";
import { AuthoritySecret } from "./authority-secret.ts";
import { ClusterInfrastructure } from "./cluster-infrastructure.ts";
import { DATA_PLANES, DATA_PLANES_WITH_TUNNEL, featuresOfPlane } from "./data-planes.ts";
import { dataPlaneOfClass, supportedFeatures } from "./features.ts";
import { ControllerFlow } from "./flow.ts";
import { openHealthServer } from "./health.ts";
import type { ControllerMetrics } from "./metrics.ts";
import { PodIdentity } from "./pod-identity.ts";
import { RefusalLog } from "./refusal-log.ts";
import { ServingCertificate } from "./serving-certificate.ts";
import { makeTunnels } from "./tunnels/make-tunnels.ts";

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
  /** Without it, no Gateway can choose a tunnel. */
  readonly tunnels?: { readonly cloudflaredImage: string; readonly apiUrl?: string };
  readonly healthAddress: string;
  readonly metricsAddress: string;
  readonly portRange: EngineSettings["portRange"];
  readonly maxListenersPerGateway: number;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly observer: KubernetesObserver & StatusObserver;
  readonly metrics: ControllerMetrics;
}

const NOTHING_KNOWN: InstalledApi = { bundleVersions: [], isKnown: false };

export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { observer, controllerName, metrics } = options;
  const features = featuresOfPlane(options.dataPlane);
  const dataPlanes = options.tunnels === undefined ? DATA_PLANES : DATA_PLANES_WITH_TUNNEL;
  const client = await createKubernetesClient({
    observer,
    ...(options.kubeconfig === undefined ? {} : { kubeconfig: options.kubeconfig }),
    ...(options.context === undefined ? {} : { context: options.context }),
  });
  const state: { synced: boolean; installed: InstalledApi } = { synced: false, installed: NOTHING_KNOWN };
  const health = await openHealthServer(options.healthAddress, () => state.synced);
  const exposition = await metrics.serve(options.metricsAddress);
  const authority = await ensureAuthority(new AuthoritySecret(client, options.namespace));
  const serving = new ServingCertificate(authority, options.streamService);
  const { certificate, key } = await serving.issue();
  const names: GatewayNames = new GatewayNames((key) => flow.resources.get(key));
  const identity = new PodIdentity(client, TOKEN_AUDIENCE, (key) => names.find(key));
  const refusals = new RefusalLog();
  const planServer = new PlanServer({
    features,
    release: options.release,
    certificate,
    key,
    address: options.stream.address,
    port: options.stream.port,
    authorize: (token, claim) => identity.mayServe(token, claim),
    onRefused: (refusal) => {
      metrics.refused(refusal.reason);
      const line = refusals.line(refusal);
      if (line !== undefined) observer.log?.("warn", line);
    },
    onReplicas: (gateway, connected) => {
      metrics.replicas(gateway, connected);
      observer.log?.("info", `Gateway ${gateway}: ${connected} replicas connected`);
    },
    onStanding: (gateway, standing) => {
      const { replicas, lagging } = standing;
      observer.log?.("info", `Gateway ${gateway}: ${lagging.length} of ${replicas} replicas lag`, {
        lagging,
      });
      flow.learnReplicas(`Gateway/${gateway}`, standing);
    },
    since: () => flow.since,
    onProgress: (stage, seconds) => metrics.propagated(stage, seconds),
  });
  const pods = new GatewayPods((gateway, found) => planServer.expect(gateway, found));
  const engine = new Engine(engineSettings(options, { features, dataPlanes }));
  const recorder = new EventRecorder({ client, controllerName, instance: options.identity, observer });
  const writer: StatusWriter = new StatusWriter({
    client,
    controllerName,
    features: (name) => {
      const chosen = dataPlaneOfClass(name, (key) => flow.resources.get(key)) ?? options.dataPlane;
      return new Set(supportedFeatures(dataPlanes[chosen] ?? features, chosen));
    },
    installed: () => state.installed,
    ...announcer(recorder, (key) => writer.held(key)),
    observer,
  });
  const tunnels = makeTunnels(options, client, {
    find: (key) => names.find(key),
    recorder,
    onChange: (gateway) => infrastructure.noticeTunnel(gateway),
  });
  const flow: ControllerFlow = new ControllerFlow({
    engine,
    dataPlane: planServer,
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
      authority: authority.certificate,
      tokenAudience: TOKEN_AUDIENCE,
      drainToken: (uid) => tokenFor(authority, `drain ${uid}`),
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
    lags: () => planServer.lags,
    standings: () => planServer.standings,
    eventsDropped: () => recorder.dropped,
  });
  flow.connect(infrastructure);
  await planServer.listen();
  serving.keepRenewed((pair) => planServer.renew(pair), observer.log);
  const { promise: synced, resolve: markSynced } = Promise.withResolvers<void>();
  const source = new KubernetesSource({
    client,
    controllerName,
    ...(options.watchNamespaces.length === 0 ? {} : { namespaces: options.watchNamespaces }),
    onInstallation: (installation) => {
      state.installed = installation;
      writer.reconsiderClasses();
    },
    observer,
  });
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
    planServer.publisher.lead(true);
    try {
      await infrastructure.lead(true);
      await tunnels.lead(true);
      await writer.run(leading);
    } finally {
      // Whatever failed: who does not lead must not write.
      planServer.publisher.lead(false);
      await tunnels.lead(false);
      await infrastructure.lead(false);
      metrics.leading(false);
    }
  });
  await watching;
  await planServer.close();
  health.close();
  exposition.close();
}

function engineSettings(
  options: ControllerOptions,
  served: Pick<EngineSettings, "features" | "dataPlanes">,
): EngineSettings {
  return {
    controllerName: options.controllerName,
    adoptUnknownClasses: false,
    assumeProgrammed: false,
    ...served,
    portRange: options.portRange,
    reservedPorts: RESERVED_PORTS,
    maxListenersPerGateway: options.maxListenersPerGateway,
    readKeyPair,
    readAuthorities,
  };
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
