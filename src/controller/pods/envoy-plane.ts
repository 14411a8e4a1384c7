/**
 * The agent beside an Envoy: writes its bootstrap, gives it the plan over a socket in the volume that both share, and drains it. Envoy is started and restarted by the kubelet,
 * so that either of the two can go without the other: an Envoy without an agent goes on with what it has, and one that returns gets all of it again.
 */
import { rmSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Replica } from "../../dataplanes/envoy/ads/ads-server.ts";
import { createEnvoyDataPlane, type TracingOptions } from "../../dataplanes/envoy/envoy-data-plane.ts";
import { bootstrap } from "../../dataplanes/envoy/process/bootstrap.ts";
import { EnvoyAdmin } from "../../dataplanes/envoy/process/envoy-admin.ts";
import { LEAVE_MS, type PodPlane, pause } from "./pod-plane.ts";

export interface EnvoyPodOptions {
  readonly gateway: string;
  readonly pod: string;
  /** Shared with Envoy. */
  readonly directory: string;
  readonly drainSeconds: number;
  readonly accessLog: boolean;
  readonly tracing?: TracingOptions | undefined;
  /** Whether what Envoy says of refusals is logged, with parts of all tenants' configuration. */
  readonly isDebugged?: boolean;
  readonly log: (level: "info" | "warn", message: string) => void;
}

const MAX_CONNECTIONS = 50_000;
const LOOK_MS = 200;
/** Clients with open connections are told to leave with their next answer; most have one within this time. */
const IDLE_MS = 5_000;

export function envoyPodPlane(options: EnvoyPodOptions): PodPlane {
  const { directory, gateway, pod, log } = options;
  const server = { path: join(directory, "ads") };
  const adminPath = join(directory, "admin");
  const config = bootstrap({
    node: { id: pod, cluster: gateway },
    server,
    admin: { path: adminPath },
    maxConnections: MAX_CONNECTIONS,
    spansTo: options.tracing?.endpoint,
  });
  writeFileSync(join(directory, "bootstrap.json"), JSON.stringify(config), { mode: 0o600 });
  // Left by an agent that was killed.
  rmSync(server.path, { force: true });
  const plan = Promise.withResolvers<void>();
  const dataPlane = createEnvoyDataPlane({
    bind: { address: hasIpv6() ? "::" : "0.0.0.0" },
    // Whoever reaches the socket shares the pod's volume.
    serve: { listen: server, gatewayOf: () => gateway, after: plan.promise, isLocal: true },
    accessLog: options.accessLog,
    ...(options.tracing === undefined ? {} : { tracing: options.tracing }),
    onLog: (line) => log("warn", `envoy: ${line}`),
    ...(options.isDebugged === true ? { onDebug: (line: string) => log("info", `envoy: ${line}`) } : {}),
  });
  const admin = new EnvoyAdmin(adminPath);
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
        await pause(LEAVE_MS);
        const graceMs = Math.max(0, options.drainSeconds * 1000 - LEAVE_MS);
        await admin.drain({ graceMs, idleMs: IDLE_MS, isGone: () => dataPlane.replicas.length === 0 });
        // Not the pod has to go but Envoy alone: the next one serves again.
        serving.onNext(() => {
          drained = undefined;
        });
      })();
      return drained;
    },
    async close() {
      serving.close();
      const closed = dataPlane.close({ graceMs: 0 });
      plan.resolve();
      await closed;
    },
  };
}

/** Which Envoys have all that they were given at first, and threads that serve. What comes later must not take a pod out of its Services. */
class ServingReplicas {
  readonly #replicas: () => readonly Replica[];
  readonly #admin: EnvoyAdmin;
  readonly #timer: NodeJS.Timeout;
  #serving: ReadonlySet<Replica> = new Set();
  #onNext: { readonly past: ReadonlySet<Replica>; readonly call: () => void } | undefined;

  constructor(replicas: () => readonly Replica[], admin: EnvoyAdmin) {
    this.#replicas = replicas;
    this.#admin = admin;
    this.#timer = setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  get some(): boolean {
    return this.#replicas().some((replica) => this.#serving.has(replica));
  }

  onNext(call: () => void): void {
    this.#onNext = { past: new Set(this.#replicas()), call };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const replicas = this.#replicas();
    const settled = replicas.filter((each) => this.#serving.has(each) || each.stream.settled);
    const isNew = settled.some((each) => !this.#serving.has(each));
    if (isNew && !(await this.#admin.isLive())) return;
    this.#serving = new Set(settled);
    const next = this.#onNext;
    if (next === undefined || !settled.some((each) => !next.past.has(each))) return;
    this.#onNext = undefined;
    next.call();
  }
}

/** A pod without IPv6 cannot open ports for both. */
function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ family }) => family === "IPv6"),
  );
}
