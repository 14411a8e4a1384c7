/** What the leader alone does: it writes statuses, events, claims, tunnels and infrastructure. */
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
  { publisher, infrastructure, tunnels, writer, claims }: ControllerParts,
  leading: AbortSignal,
): Promise<void> {
  metrics.leading(true);
  publisher.lead(true);
  try {
    // Statuses do not wait until everything of Gateways that are gone has been looked for.
    await together(leading, [
      () => infrastructure.lead(true).then(() => tunnels.lead(true)),
      (signal) => writer.run(signal),
      (signal) => claims.run(signal),
    ]);
  } finally {
    // After any failure: a replica that does not lead must not write.
    publisher.lead(false);
    await tunnels.lead(false);
    await infrastructure.lead(false);
    metrics.leading(false);
  }
}

/** Settles when all of it has ended: what fails ends the rest. */
async function together(
  leading: AbortSignal,
  works: readonly ((signal: AbortSignal) => Promise<void>)[],
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([leading, failed.signal]);
  const ended = works.map((work) =>
    work(signal).catch((error: unknown) => {
      failed.abort();
      throw error;
    }),
  );
  await Promise.allSettled(ended);
  await Promise.all(ended);
}
