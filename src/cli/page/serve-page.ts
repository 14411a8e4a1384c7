/** Serves the page of a cluster to its user, until told to stop. */
import { Metrics } from "../../admin/metrics/metrics.ts";
import { startAdmin } from "../../admin/server/admin-server.ts";
import { AdminSession } from "../../admin/server/session.ts";
import { DEFAULT_CONTROLLER } from "../../engine/foundation/settings.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import { KubernetesSource } from "../../sources/kubernetes/source.ts";
import type { ReadingScope } from "../../view/written/reading-scope.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { parseSocketAddress, type SocketAddress } from "../run/addresses.ts";
import { type ClusterFlags, chooseTarget } from "../workspace/cluster-flags.ts";
import { connect, reach } from "../workspace/read-cluster.ts";
import { ClusterView } from "./cluster-view.ts";
import { ReadWarnings } from "./read-warnings.ts";

export async function servePage(
  flags: ClusterFlags & { readonly address: string },
  host: Host,
): Promise<ExitCode> {
  const place = loopbackPlace(flags.address);
  chooseTarget([], flags, host);
  const client = await connect(flags);
  await reach(client, host.signal);
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  const warnings = new ReadWarnings(flags, client.server, () => stop.abort());
  const view = new ClusterView();
  host.err.line(`reading ${client.server.host} …`);
  const running = sourceOf(client, flags, warnings).run((changes) => {
    view.take(changes, () => warnings.settle());
  }, signal);
  const ended = running.then(() => undefined);
  const scope = await Promise.race([view.scope, ended]);
  if (scope !== undefined) await show(view, scope, { place, host, signal, client });
  stop.abort();
  await running;
  view.close();
  const lost = warnings.lost;
  if (lost === undefined) return 0;
  throw new CannotRun(`you may not read ${lost} any more`, "Start it again to see what you may read now.");
}

function sourceOf(
  client: KubernetesClient,
  { namespace }: ClusterFlags,
  warnings: ReadWarnings,
): KubernetesSource {
  return new KubernetesSource({
    client,
    controllerName: DEFAULT_CONTROLLER,
    skipForbidden: true,
    ...(namespace.length === 0 ? {} : { namespaces: namespace }),
    observer: {
      log: (level, message) => {
        if (level === "warn" || level === "error") warnings.take(message);
      },
    },
  });
}

interface Surroundings {
  readonly place: SocketAddress;
  readonly host: Host;
  readonly signal: AbortSignal;
  readonly client: KubernetesClient;
}

/** Until the signal is aborted. */
async function show(
  view: ClusterView,
  scope: ReadingScope,
  { place, host, signal, client }: Surroundings,
): Promise<void> {
  if (signal.aborted) return;
  const session = new AdminSession();
  const state = {
    version: host.version,
    table: view.table,
    scope,
    state: () => view.state(),
    ...(scope.sees === "all"
      ? { blastRadius: (question: Parameters<ClusterView["blastRadius"]>[0]) => view.blastRadius(question) }
      : {}),
    isReady: () => true,
    onChanges: (handler: Parameters<ClusterView["onChanges"]>[0]) => view.onChanges(handler),
  };
  const admin = await startAdmin(state, { ...place, metrics: new Metrics(host.version), session }).catch(
    (error: Error) => {
      throw new CannotRun(`the page cannot be served on ${place.address}:${place.port}: ${error.message}`);
    },
  );
  host.err.line(scopeText(scope, client.server.host));
  host.out.line(session.link(admin.url));
  host.err.line("Open the link in a browser on this machine; Ctrl-C ends it.");
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  await admin.close();
}

function scopeText({ sees, namespaces, unread }: ReadingScope, server: string): string {
  const where = namespaces.length === 0 ? server : `${namespaces.join(", ")} of ${server}`;
  if (sees === "all") return `${where}: the view of the Gateway's owner`;
  const missing = unread.length === 0 ? "" : `; you may not read ${unread.join(", ")}`;
  return sees === "merge"
    ? `${where}: who holds what, the rest as the statuses tell it${missing}`
    : `${where}: what you may read, as the statuses tell it${missing}`;
}

/** Plain HTTP is for this machine alone. */
function loopbackPlace(text: string): SocketAddress {
  const place = parseSocketAddress(text, "--address");
  if (place.address.startsWith("127.") || place.address === "::1") return place;
  throw new CannotRun(
    `--address cannot be ${place.address}: the page is served without TLS`,
    "Use an address of loopback, and the port forwarding of ssh from elsewhere.",
  );
}
