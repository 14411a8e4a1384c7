/**
 * The agent beside an Envoy: writes its bootstrap, serves ADS over a socket in the volume that both
 * share, and drains it. The kubelet starts and restarts Envoy, so that each of the two can restart
 * without the other. An Envoy without an agent keeps its configuration, and a new Envoy gets all of
 * it again.
 */
import { rmSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { EnvoyReplica } from "../dataplanes/envoy/ads/ads-server.ts";
import { createEnvoyDataPlane } from "../dataplanes/envoy/envoy-data-plane.ts";
import { bootstrap } from "../dataplanes/envoy/process/bootstrap.ts";
import { EnvoyAdmin } from "../dataplanes/envoy/process/envoy-admin.ts";
import { TrafficLog, type TrafficLogOptions } from "../dataplanes/envoy/traffic/traffic-log.ts";
import type { RequestRecord } from "../dataplanes/request-record.ts";
import type { SamplingSettings } from "../dataplanes/telemetry/telemetry-settings.ts";
import { TrafficCounts } from "../dataplanes/traffic/traffic-counts.ts";
import { LEAVE_MS, type PodPlane, waitFor } from "./pod-plane.ts";

export interface EnvoyPodOptions {
  readonly gateway: string;
  readonly pod: string;
  /** Shared with Envoy. */
  readonly directory: string;
  /** Where Envoy answers readiness probes. */
  readonly readinessPort: number;
  readonly drainSeconds: number;
  /** Absent: nothing is counted. */
  readonly traffic?: TrafficCounts | undefined;
  /** Shared with Envoy: where it counts requests. Its size bounds what Envoy keeps for nobody. */
  readonly trafficDirectory: string;
  /** Absent: requests are not traced. */
  readonly tracing?: SamplingSettings | undefined;
  /** Absent: requests are counted at most. */
  readonly onRequestEnd?: ((record: RequestRecord) => void) | undefined;
  /** Requests that it is never called for, because Envoy had no room for their lines. */
  readonly onMissing?: ((requests: number) => void) | undefined;
  /** Whether it is called for requests that are sampled alone. */
  readonly onlySampled?: boolean;
  /** Whether what Envoy says of refusals is logged, with parts of all tenants' configuration. */
  readonly isDebugged?: boolean;
  readonly log: (level: "info" | "warn", message: string) => void;
}

const MAX_CONNECTIONS = 50_000;
const LOOK_MS = 200;
const RECORD_LOOK_MS = 250;
/**
 * Open connections are closed with their next response. Most of them have one within this time.
 */
const IDLE_MS = 5_000;

export function envoyPodPlane(options: EnvoyPodOptions): PodPlane {
  const { directory, gateway, pod, log } = options;
  const server = { path: join(directory, "ads") };
  const adminPath = join(directory, "admin");
  const address = hasIpv6() ? "::" : "0.0.0.0";
  const config = bootstrap({
    node: { id: pod, cluster: gateway },
    server,
    admin: { path: adminPath },
    maxConnections: MAX_CONNECTIONS,
    isTraced: options.tracing !== undefined,
    readiness: { address, port: options.readinessPort },
  });
  writeFileSync(join(directory, "bootstrap.json"), JSON.stringify(config), { mode: 0o600 });
  // Left by an agent that was killed.
  rmSync(server.path, { force: true });
  const { onRequestEnd, onlySampled = false } = options;
  const isRecorded = onRequestEnd !== undefined;
  const trafficLog =
    options.traffic === undefined && !isRecorded ? undefined : join(options.trafficDirectory, "traffic");
  const plan = Promise.withResolvers<void>();
  const dataPlane = createEnvoyDataPlane({
    bind: { address },
    // No further authentication: only containers of this pod reach the socket.
    serve: {
      listen: server,
      gatewayOf: () => gateway,
      after: plan.promise,
      isLocal: true,
      ...(trafficLog === undefined ? {} : { trafficLog, isRecorded }),
    },
    onlySampled,
    ...(options.traffic === undefined ? {} : { traffic: options.traffic }),
    tracing: options.tracing,
    onLog: (line) => log("warn", `envoy: ${line}`),
    ...(options.isDebugged === true ? { onDebug: (line: string) => log("info", `envoy: ${line}`) } : {}),
  });
  const admin = new EnvoyAdmin(adminPath);
  const traffic =
    trafficLog === undefined
      ? undefined
      : new TrafficLog({
          path: trafficLog,
          gateway,
          // What was lost on the way is found by counting, whether or not anybody reads the counts.
          counts: options.traffic ?? new TrafficCounts(),
          ...(onRequestEnd === undefined ? {} : recordsFor({ ...options, onRequestEnd, onlySampled })),
          ask: (method, path) => admin.ask(method, path),
        });
  const serving = new ServingReplicas(() => dataPlane.replicas, admin);
  let drained: Promise<void> | undefined;
  return {
    dataPlane,
    begin: () => plan.resolve(),
    get isReady() {
      return drained === undefined && serving.some;
    },
    drain() {
      drained ??= (async () => {
        log("info", "leaving: no new connections are expected, those in flight may finish");
        await serving.leave();
        await waitFor(LEAVE_MS);
        const graceMs = Math.max(0, options.drainSeconds * 1000 - LEAVE_MS);
        await admin.drain({ graceMs, idleMs: IDLE_MS, isGone: () => dataPlane.replicas.length === 0 });
        // Only Envoy restarts, not the pod: the next Envoy serves again.
        serving.onNext(() => {
          drained = undefined;
        });
      })();
      return drained;
    },
    async close() {
      serving.close();
      await traffic?.close();
      const closed = dataPlane.close({ graceMs: 0 });
      plan.resolve();
      await closed;
    },
  };
}

/** A record is told soon: people look at logs while things happen. */
function recordsFor({
  onRequestEnd,
  onMissing = () => {},
  onlySampled,
}: Pick<EnvoyPodOptions, "onMissing"> & {
  readonly onRequestEnd: (record: RequestRecord) => void;
  readonly onlySampled: boolean;
}): Pick<TrafficLogOptions, "records" | "lookMs" | "compareEvery"> {
  const onRecord = (record: RequestRecord): void => {
    if (!onlySampled || record.trace?.isSampled === true) onRequestEnd(record);
  };
  const records = { onRecord, areCounted: !onlySampled, onMissing };
  // Lines are late for as long as before, however often somebody looks.
  return { records, lookMs: RECORD_LOOK_MS, compareEvery: 12 };
}

/**
 * Which Envoys have all of their first configuration, and workers that serve. Each is set ready
 * once. Neither later configuration nor a lost stream makes it unready: it still serves.
 */
class ServingReplicas {
  readonly #replicas: () => readonly EnvoyReplica[];
  readonly #admin: EnvoyAdmin;
  readonly #timer: NodeJS.Timeout;
  #serving: ReadonlySet<EnvoyReplica> = new Set();
  #leaving: ReadonlySet<EnvoyReplica> = new Set();
  #onNext: (() => void) | undefined;
  #isLooking = false;

  constructor(replicas: () => readonly EnvoyReplica[], admin: EnvoyAdmin) {
    this.#replicas = replicas;
    this.#admin = admin;
    this.#timer = setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  get some(): boolean {
    return this.#replicas().some((replica) => this.#serving.has(replica));
  }

  /** Sets the current Envoys unready, so that they get no new clients. */
  async leave(): Promise<void> {
    this.#leaving = new Set(this.#replicas());
    await this.#admin.setReady(false);
  }

  /** Called when an Envoy serves that started after the others were set unready. */
  onNext(call: () => void): void {
    this.#onNext = call;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#welcome();
    } finally {
      this.#isLooking = false;
    }
  }

  async #welcome(): Promise<void> {
    const settled = this.#replicas().filter((each) => this.#serving.has(each) || each.stream.settled);
    const fresh = settled.filter((each) => !this.#serving.has(each) && !this.#leaving.has(each));
    if (fresh.length > 0 && !((await this.#admin.isLive()) && (await this.#admin.setReady(true)))) return;
    this.#serving = new Set(settled);
    if (fresh.length === 0) return;
    this.#onNext?.();
    this.#onNext = undefined;
  }
}

/** A pod without IPv6 cannot open ports for both. */
function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ family }) => family === "IPv6"),
  );
}
