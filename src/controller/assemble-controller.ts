/**
 * A controller: builds its parts (`build-parts.ts`), wires them (`wire-controller.ts`), watches the
 * cluster, and leads when it is elected (`lead.ts`). Every replica watches, computes and publishes
 * the plan. Only the leader writes statuses, Events and infrastructure. It needs nothing but a
 * client of the API server; run-controller.ts opens the streams to pods.
 */
import type { EndpointSlice } from "../api/core.ts";
import type { PlanPublisher } from "../dataplanes/remote/publisher/plan-publisher.ts";
import type { GatewayNames } from "../infra/gateway-names.ts";
import { KubernetesSource } from "../sources/kubernetes/source.ts";
import type { ResourceChange } from "../sources/source.ts";
import type { InstalledApi } from "../status/kubernetes/gateway-class.ts";
import type { Surroundings } from "./build-parts.ts";
import type { ControllerOptions } from "./controller-options.ts";
import { leadWhenElected } from "./lead.ts";
import { type ControllerParts, wireController } from "./wire-controller.ts";

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
  const { client } = surroundings;
  const { controllerName, watchNamespaces, observer } = options;
  let isSynced = false;
  let installed = NOTHING_KNOWN;
  const parts = wireController(options, surroundings, () => installed);
  const source = new KubernetesSource({
    client,
    controllerName,
    ...(watchNamespaces.length === 0 ? {} : { namespaces: watchNamespaces }),
    onInstallation: (installation) => {
      installed = installation;
      parts.writer.reconsiderInstallation();
    },
    observer,
  });
  return {
    publisher: parts.publisher,
    names: parts.names,
    get isSynced() {
      return isSynced;
    },
    async run(signal) {
      const { promise: synced, resolve: markSynced } = Promise.withResolvers<void>();
      const watching = source.run((changes, since) => {
        takeChanges(parts, changes, isSynced ? since : undefined);
        isSynced = true;
        markSynced();
      }, signal);
      await Promise.race([synced, watching]);
      await leadWhenElected(options, client, parts, signal);
      await watching;
      await parts.publisher.close();
    },
  };
}

/** What the cluster has changed, to all who look at it. The flow comes after those it asks. */
function takeChanges(
  { flow, names, pods, tunnels, writer, infrastructure }: ControllerParts,
  changes: readonly ResourceChange[],
  since: number | undefined,
): void {
  writer.observe(changes);
  for (const { key, resource } of changes) names.notice(key, resource);
  for (const { key, resource } of changes) tunnels.notice(key, resource);
  for (const { key, resource } of changes)
    if (key.startsWith("EndpointSlice/")) pods.notice(key, resource as EndpointSlice | undefined);
  flow.take(changes, { since });
  for (const { key, resource } of changes) infrastructure.notice(key, resource);
  if (changes.some(({ key }) => key.startsWith("GatewayParameters/"))) writer.reconsiderClasses();
}
