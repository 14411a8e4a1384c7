import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../../api/gateway.ts";
import { failureOf } from "../../dataplanes/tunnel/cloudflare/api-failure.ts";
import type { CloudflareApi } from "../../dataplanes/tunnel/cloudflare/cloudflare-api.ts";
import type { TunnelCluster } from "./tunnel-cluster.ts";

export interface TunnelEnd {
  readonly gateway: Gateway;
  readonly cluster: TunnelCluster;
  /** What is to be deleted; absent where nothing can be, or nothing shall. */
  readonly tunnel?: NamedTunnel;
  /** Nothing was deleted. */
  readonly onLeftBehind: () => void;
}

export interface NamedTunnel {
  readonly api: CloudflareApi;
  readonly name: string;
  /** A tunnel of the same name may be that of another cluster. */
  readonly isOurs: (id: string) => boolean;
}

const LOOK_MS = 1_000;
/** Longer than pods may take to end by themselves. */
const LOOKS = 90;

/**
 * Deletes the pods first, because a tunnel in use cannot be deleted, then the tunnel, and then
 * removes the Gateway's finalizer. Returns what prevented it, if anything did.
 */
export async function endTunnel({
  gateway,
  cluster,
  tunnel,
  onLeftBehind,
}: TunnelEnd): Promise<string | undefined> {
  try {
    await cluster.removePods(gateway);
    if (tunnel === undefined) onLeftBehind();
    else await deleteTunnel(tunnel);
    await cluster.setFinalizer(gateway, false);
    return undefined;
  } catch (error) {
    return failureOf(error, "deleting the tunnel").message;
  }
}

async function deleteTunnel({ api, name, isOurs }: NamedTunnel): Promise<void> {
  const tunnel = await api.find(name);
  if (tunnel === undefined || !isOurs(tunnel.id)) return;
  for (let look = 0; look < LOOKS; look++) {
    if ((await api.health(tunnel.id)).connections === 0) break;
    await sleep(LOOK_MS);
  }
  await api.delete(tunnel.id);
}
