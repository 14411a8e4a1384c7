/** What the leader alone does: it writes statuses, events, tunnels and infrastructure. */
import type { KubernetesClient } from "../kubernetes/client.ts";
import { runLeaderElection } from "../kubernetes/lease.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { ControllerParts } from "./wire-controller.ts";

/** Leads whenever this replica is elected: always, where there is no election. */
export async function leadWhenElected(
  options: ControllerOptions,
  client: KubernetesClient,
  parts: ControllerParts,
  signal: AbortSignal,
): Promise<void> {
  const work = (leading: AbortSignal): Promise<void> => lead(options, parts, leading);
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

async function lead(
  { metrics }: ControllerOptions,
  { publisher, infrastructure, tunnels, writer }: ControllerParts,
  leading: AbortSignal,
): Promise<void> {
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
}
