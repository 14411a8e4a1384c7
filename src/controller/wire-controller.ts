/**
 * The controller's parts, wired: one screen that shows who tells whom what.
 *
 * The flow gives the plan to the publisher, verdicts to the writer, and the ports of Gateways to
 * their infrastructure. It gets back what pods have programmed, who lags, and which addresses there
 * are.
 */
import type { PlanPublisher } from "../dataplanes/remote/publisher/plan-publisher.ts";
import { Engine } from "../engine/engine.ts";
import { gatewayOfItem } from "../engine/foundation/item-ids.ts";
import { Flow } from "../flow/flow.ts";
import { changesPlan } from "../flow/joined-deltas.ts";
import { GatewayNames } from "../infra/gateway-names.ts";
import { GatewayPods } from "../infra/gateway-pods.ts";
import type { InfrastructureReconciler, ReconcilerOptions } from "../infra/reconciler.ts";
import type { PlanDelta } from "../plan/plan.ts";
import { EventRecorder } from "../status/events/events.ts";
import type { InstalledApi } from "../status/kubernetes/gateway-class.ts";
import type { StatusWriter } from "../status/kubernetes/writer.ts";
import {
  buildInfrastructure,
  buildPublisher,
  buildStatusWriter,
  classContents,
  engineSettings,
  type Surroundings,
} from "./build-parts.ts";
import { ClaimWriter } from "./claims/claim-writer.ts";
import { ClusterInfrastructure } from "./cluster-infrastructure.ts";
import type { ControllerOptions } from "./controller-options.ts";
import { listenerStates } from "./listener-states.ts";
import { quotaSeries } from "./quota-series.ts";
import { ServedGateways } from "./served-gateways.ts";
import type { GatewayTunnels } from "./tunnels/gateway-tunnels.ts";
import { makeTunnels } from "./tunnels/make-tunnels.ts";

export interface ControllerParts {
  readonly flow: Flow;
  readonly names: GatewayNames;
  readonly publisher: PlanPublisher;
  readonly pods: GatewayPods;
  readonly writer: StatusWriter;
  readonly tunnels: GatewayTunnels;
  readonly infrastructure: InfrastructureReconciler;
  readonly claims: ClaimWriter;
}

export function wireController(
  options: ControllerOptions,
  surroundings: Surroundings,
  installed: () => InstalledApi,
): ControllerParts {
  const { client } = surroundings;
  const { controllerName, identity, observer, metrics } = options;
  const cluster = new ClusterInfrastructure(client, options.watchNamespaces);
  const recorder = new EventRecorder({ client, controllerName, instance: identity, observer });
  const names: GatewayNames = new GatewayNames((key) => flow.resources.get(key));
  const publisher = buildPublisher(options, {
    since: () => flow.since,
    onConfirmed: (gateway, confirmed) =>
      flow.learnReplicas(`Gateway/${gateway}`, confirmed.lagging.length === 0 ? undefined : confirmed),
  });
  const pods = new GatewayPods((gateway, found) => publisher.expect(gateway, found));
  const find: ReconcilerOptions["find"] = (key) => names.find(key);
  const classes = classContents(options, (key) => flow.resources.get(key), installed);
  const writer = buildStatusWriter(options, { client, recorder, classes });
  const tunnels = makeTunnels(options, {
    client,
    infrastructure: cluster,
    recorder,
    find,
    onChange: (gateway) => infrastructure.noticeTunnel(gateway),
  });
  const infrastructure: InfrastructureReconciler = buildInfrastructure(options, surroundings, {
    cluster,
    find,
    tunnels,
    onFact: (gateway, fact) => flow.learnAddresses(gateway, fact),
  });
  const served = new ServedGateways();
  const engine = new Engine(engineSettings(options, surroundings));
  const claims = new ClaimWriter({
    client,
    controllerName,
    watchNamespaces: options.watchNamespaces,
    engine,
    uidOf: (gateway) => flow.resources.get(gateway)?.metadata.uid,
    referenceOf: surroundings.referenceOf,
    onFact: (gateway, problem) => flow.learnClaims(gateway, problem === undefined ? {} : { problem }),
    observer,
  });
  const flow: Flow = new Flow({
    engine,
    dataPlane: publisher,
    timed: (advance) => metrics.timed(advance),
    onStep: (delta, { since }) => {
      const { plan, verdicts } = delta;
      if (changesPlan(delta)) {
        tunnels.follow(plan);
        followPods(pods, plan);
        for (const gateway of served.follow(plan)) infrastructure.serve(gateway, served.portsOf(gateway));
      }
      if (verdicts.size > 0) writer.judge(verdicts, since);
      claims.follow();
    },
  });
  metrics.read({
    backlog: () => writer.backlog,
    lags: () => publisher.lags,
    confirmed: () => publisher.confirmed,
    eventsDropped: () => recorder.dropped,
    listeners: () => listenerStates(engine.listeners()),
    violations: () => engine.tenantViolations(),
    quotas: () => quotaSeries(engine.quotaUses(), { namesTenants: options.dataPlaneMetrics }),
    claims: () => claims.counts(),
  });
  if (options.stateMetrics) {
    const { resources } = flow;
    metrics.showState({ controllerName, resources, verdicts: () => engine.verdicts(), classes });
  }
  return { flow, names, publisher, pods, writer, tunnels, infrastructure, claims };
}

function followPods(pods: GatewayPods, { upserts, removes }: PlanDelta): void {
  for (const { type, gateway } of upserts) if (type === "gateway") pods.serve(gateway);
  for (const id of removes) if (id.startsWith("gateway:")) pods.release(gatewayOfItem(id));
}
