/**
 * The proxy behind a connector: it serves on loopback alone, and cloudflared beside it in the pod
 * brings the requests. The pod is ready while the connector is connected, and so readiness is how
 * the controller knows of connectors. Told to end, the proxy outlives its connector, which lets
 * requests finish.
 */
import { createEmbeddedDataPlane } from "../dataplanes/embedded/embedded-data-plane.ts";
import type { EmbeddedOptions } from "../dataplanes/embedded/limits/options.ts";
import type { TrafficCounts } from "../dataplanes/traffic/traffic-counts.ts";
import { readyConnections } from "../dataplanes/tunnel/cloudflare/connector-readiness.ts";
import type { TunnelLink, TunnelState } from "../dataplanes/tunnel/cloudflare/tunnel-link.ts";
import { makeOriginCertificate } from "../dataplanes/tunnel/origin-certificate.ts";
import { TunnelDataPlane } from "../dataplanes/tunnel/tunnel-data-plane.ts";
import { LEAVE_MS, type PodPlane, waitFor } from "./pod-plane.ts";

export interface TunnelPodOptions extends Pick<EmbeddedOptions, "onRequestEnd" | "onlySampled" | "tracing"> {
  readonly workers: number;
  readonly drainSeconds: number;
  /** Where the tunnel leads; the next one is for gRPC. */
  readonly port: number;
  /** Where the connector serves its readiness. */
  readonly connectorPort: number;
  readonly now: Date;
  /** Absent: nothing is counted. */
  readonly traffic?: TrafficCounts | undefined;
}

const ADDRESS = "127.0.0.1";
const LOOK_MS = 1_000;

export async function tunnelPodPlane(options: TunnelPodOptions): Promise<PodPlane> {
  const { port, connectorPort, drainSeconds, workers, traffic, ...requests } = options;
  const dataPlane = new TunnelDataPlane({
    inner: createEmbeddedDataPlane({
      bind: { address: ADDRESS },
      workers,
      traffic,
      trustedHops: { clientHeader: "cf-connecting-ip" },
      ...requests,
    }),
    link: new OutsideLink(),
    address: ADDRESS,
    firstPort: port,
    certificate: await makeOriginCertificate(ADDRESS, options.now),
  });
  const stopped = new AbortController();
  const look = (): Promise<number | undefined> => readyConnections(connectorPort, stopped.signal);
  let connected = false;
  const timer = setInterval(async () => {
    connected = ((await look()) ?? 0) > 0;
  }, LOOK_MS);
  let leaving = false;
  return {
    dataPlane,
    begin: () => {},
    get isReady() {
      return connected && !leaving;
    },
    async close() {
      leaving = true;
      clearInterval(timer);
      await waitFor(LEAVE_MS);
      const end = Date.now() + drainSeconds * 1000 - LEAVE_MS;
      while (Date.now() < end && (await look()) !== undefined) await waitFor(LOOK_MS);
      stopped.abort();
      await dataPlane.close({ graceMs: Math.max(0, end - Date.now()) });
    },
  };
}

/**
 * The controller manages the tunnel, and the kubelet the connector. Readiness shows their state.
 */
class OutsideLink implements TunnelLink {
  readonly #led: Set<string> = new Set();
  #handler: ((gateway: string, state: TunnelState) => void) | undefined;

  lead(gateway: string): void {
    this.#led.add(gateway);
    this.#handler?.(gateway, ELSEWHERE);
  }

  release(gateway: string): void {
    this.#led.delete(gateway);
  }

  onState(handler: (gateway: string, state: TunnelState) => void): void {
    this.#handler = handler;
    for (const gateway of this.#led) handler(gateway, ELSEWHERE);
  }

  async close(): Promise<void> {}
}

const ELSEWHERE: TunnelState = { connections: 1 };
