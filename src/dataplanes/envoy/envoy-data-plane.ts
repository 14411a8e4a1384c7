/**
 * Envoy as a data plane: the plan becomes xDS resources, Envoys subscribe to them, and their ACKs
 * and NACKs become reports. Every Gateway has its own resources and Envoys.
 */

import { mkdtempSync, rmSync } from "node:fs";
import type { ServerHttp2Session } from "node:http2";
import type { ListenOptions } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ItemReport } from "../../plan/item-report.ts";
import type { ItemId, PlanDelta, PlanItem, PortItem } from "../../plan/plan.ts";
import { Authenticator } from "../authentication/authenticator.ts";
import type { CloseOptions, DataPlane } from "../dataplane.ts";
import type { RequestRecord } from "../request-record.ts";
import type { SamplingSettings } from "../telemetry/telemetry-settings.ts";
import type { TrafficCounts } from "../traffic/traffic-counts.ts";
import { AdsServer, type EnvoyNode, type EnvoyReplica } from "./ads/ads-server.ts";
import { type Answer, defaultStreamLimits, type StreamLimits } from "./ads/ads-stream.ts";
import { countBody } from "./ads/body-counter.ts";
import { CHECK_METHOD, serveCheck } from "./check-service.ts";
import { envoyFeatures } from "./features.ts";
import { GatewayConfig } from "./gateway-config.ts";
import { COUNT_METHOD } from "./messages/body-count.ts";
import { EnvoyProcess } from "./process/envoy-process.ts";
import { awaitOpenPort } from "./process/open-port.ts";
import { readAccessLog } from "./traffic/access-log.ts";
import { gatewayTracing } from "./traffic/gateway-tracing.ts";
import { portLogs } from "./traffic/port-logs.ts";
import { handshakeLog } from "./traffic/traffic-line.ts";
import { TrafficLog } from "./traffic/traffic-log.ts";

export interface EnvoyOptions {
  readonly bind: {
    readonly address: string;
    /** The address and port that a Gateway's port is bound to; by default the port itself. */
    readonly portMap?: (port: number) => number;
  };
  /** How many proxies in front are trusted to set X-Forwarded-* headers; 0: none. */
  readonly trustedHops?: number;
  readonly limits?: Partial<StreamLimits>;
  /** How long a cluster outlives its last route. */
  readonly lingerMs?: number;
  /**
   * Envoys that this process starts itself, one for each Gateway. Absent: they come from elsewhere.
   */
  readonly supervise?: SuperviseOptions;
  /** Where Envoys from elsewhere connect, and which Gateway each is for. */
  readonly serve?: {
    readonly listen: ListenOptions;
    readonly gatewayOf: (node: EnvoyNode, session: ServerHttp2Session | undefined) => string | undefined;
    /**
     * Until then no Envoy gets a response: without a plan it would get an empty configuration and
     * remove everything.
     */
    readonly after?: Promise<unknown>;
    /** Their ports are opened on this host, where it can be seen. */
    readonly isLocal?: boolean;
    /** The file that they count requests in; absent: they count none. */
    readonly trafficLog?: string;
    /** Whether they record requests in it as well. */
    readonly isRecorded?: boolean;
  };
  /** Absent: requests are not traced, and what clients say of traces is passed on. */
  readonly tracing?: SamplingSettings | undefined;
  /** Where traffic is counted; of Envoys from elsewhere by whoever reads their log. */
  readonly traffic?: TrafficCounts;
  /** Called once per request of Envoys that this process supervises. */
  readonly onRequestEnd?: (record: RequestRecord) => void;
  /** Whether only requests that are sampled are recorded. */
  readonly onlySampled?: boolean;
  readonly onLog?: (line: string) => void;
  /** The text of Envoy's NACKs, with parts of all tenants' configuration. */
  readonly onDebug?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface SuperviseOptions {
  readonly binary: string;
  readonly concurrency?: number;
  readonly maxConnections?: number;
  readonly drainSeconds?: number;
  readonly extraArguments?: readonly string[];
}

const DEFAULT_GRACE_MS = 10_000;
const SETTLE_POLL_MS = 5;
const LONGEST_POLL_MS = 200;
const RETRY_PORT_MS = 500;

export class EnvoyDataPlane implements DataPlane {
  readonly features: ReadonlySet<string> = envoyFeatures;
  readonly #options: EnvoyOptions;
  readonly #gateways: Map<string, GatewayConfig> = new Map();
  readonly #gatewayOf: Map<ItemId, string> = new Map();
  readonly #processes: Map<string, EnvoyProcess> = new Map();
  /** Of Envoys that this process supervises, by Gateway. */
  readonly #trafficLogs: Map<string, TrafficLog> = new Map();
  /** Of Gateways that were deleted. */
  readonly #leaving: Set<EnvoyProcess> = new Set();
  readonly #servers: readonly AdsServer[];
  readonly #authenticator: Authenticator = new Authenticator({
    guard: (id) => this.#configOf(id)?.asked("guard", id),
    backend: (id) => this.#configOf(id)?.asked("backend", id),
    clientCertificate: (gateway) => this.#gateways.get(gateway)?.clientCertificate(),
  });
  readonly #directory: string | undefined;
  /** Envoys can connect; fails when the server cannot listen. */
  readonly ready: Promise<unknown>;
  readonly #timers: Set<NodeJS.Timeout> = new Set();
  #handler: ((reports: readonly ItemReport[]) => void) | undefined;
  #started = 0;
  #closed: Promise<void> | undefined;

  constructor(options: EnvoyOptions) {
    this.#options = options;
    const servers: {
      readonly server: AdsServer;
      readonly listen: ListenOptions;
      readonly after?: Promise<unknown> | undefined;
    }[] = [];
    if (options.supervise !== undefined) {
      this.#directory = mkdtempSync(join(tmpdir(), "mergeway-envoy-"));
      // The socket lies in a folder that only this user may enter; the name of the process says
      // which Gateway it is for.
      const server = this.#server(({ cluster }) => (this.#processes.has(cluster) ? cluster : undefined));
      servers.push({ server, listen: { path: join(this.#directory, "ads") } });
    }
    if (options.serve !== undefined) {
      const { gatewayOf, listen, after } = options.serve;
      servers.push({ server: this.#server(gatewayOf), listen, after });
    }
    this.#servers = servers.map(({ server }) => server);
    this.ready = Promise.all(
      servers.map(async ({ server, listen, after }) => {
        if (after !== undefined) await after;
        if (this.#closed === undefined) await server.listen(listen);
      }),
    );
    this.ready.catch((error) => options.onLog?.(`the server of Envoys cannot listen: ${error}`));
    options.signal?.addEventListener("abort", () => void this.close({ graceMs: 0 }), { once: true });
  }

  /** Every connected Envoy has answered for everything that it subscribed to. */
  get settled(): boolean {
    const replicas = this.replicas;
    return replicas.length >= this.#processes.size && replicas.every(({ stream }) => stream.settled);
  }

  /** Waits until `settled`. Then everything that was applied before is served, reported or not. */
  async settle(): Promise<void> {
    while (!this.settled && this.#closed === undefined) {
      await new Promise((resolve) => setTimeout(resolve, SETTLE_POLL_MS));
    }
  }

  /** Waits until Envoys have answered for everything that was applied before. */
  async served(gateway?: string): Promise<boolean> {
    const marks = new Map<EnvoyReplica, () => boolean>();
    const isMeant = (name: string): boolean => gateway === undefined || name === gateway;
    for (let wait = SETTLE_POLL_MS; this.#closed === undefined; wait = Math.min(2 * wait, LONGEST_POLL_MS)) {
      const replicas = this.replicas.filter((each) => isMeant(each.gateway));
      for (const each of replicas) if (!marks.has(each)) marks.set(each, each.stream.mark());
      const started = [...this.#processes.keys()].filter(isMeant).length;
      const expected = Math.max(started, this.#options.serve === undefined ? 0 : 1);
      if (replicas.length >= expected && replicas.every((each) => marks.get(each)?.())) return true;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
    return false;
  }

  get replicas(): readonly EnvoyReplica[] {
    return this.#servers.flatMap((server) => [...server.replicas]);
  }

  apply(delta: PlanDelta): void {
    if (this.#closed !== undefined) return;
    this.#options.traffic?.apply(delta);
    for (const [gateway, part] of this.#parted(delta)) {
      const config = this.#config(gateway);
      config.apply(part);
      if (config.isEmpty) this.#release(gateway, config);
      else this.#supervise(gateway);
    }
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#handler = handler;
    for (const config of this.#gateways.values()) config.status.onReport(handler);
  }

  close({ graceMs = DEFAULT_GRACE_MS }: CloseOptions = {}): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  /** Closes all streams, as a restart of the controller would. */
  disconnect(): void {
    for (const server of this.#servers) server.disconnect();
  }

  process(gateway: string): EnvoyProcess | undefined {
    return this.#processes.get(gateway);
  }

  async #close(graceMs: number): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    const all = [...this.#processes.values(), ...this.#leaving];
    await Promise.all(all.map((process) => process.close(graceMs)));
    await Promise.all(this.#trafficLogs.values().map((log) => log.close()));
    await this.ready.catch(() => undefined);
    await Promise.all(this.#servers.map((server) => server.close()));
    for (const config of this.#gateways.values()) config.close();
    this.#authenticator.close();
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Items by their Gateway; one that moves is removed from where it was. */
  #parted(delta: PlanDelta): Map<string, { upserts: PlanItem[]; removes: ItemId[] }> {
    const parts = new Map<string, { upserts: PlanItem[]; removes: ItemId[] }>();
    const part = (gateway: string): { upserts: PlanItem[]; removes: ItemId[] } => {
      const found = parts.get(gateway) ?? { upserts: [], removes: [] };
      parts.set(gateway, found);
      return found;
    };
    const leave = (id: ItemId): void => {
      const gateway = this.#gatewayOf.get(id);
      if (gateway !== undefined) part(gateway).removes.push(id);
      this.#gatewayOf.delete(id);
    };
    for (const id of delta.removes) leave(id);
    for (const item of delta.upserts) {
      const before = this.#gatewayOf.get(item.id);
      if (before !== undefined && before !== item.gateway) leave(item.id);
      this.#gatewayOf.set(item.id, item.gateway);
      part(item.gateway).upserts.push(item);
    }
    return parts;
  }

  /** The configuration of the Gateway whose item it is, or was until now. */
  #configOf(id: ItemId): GatewayConfig | undefined {
    const gateway = this.#gatewayOf.get(id);
    if (gateway !== undefined) return this.#gateways.get(gateway);
    return [...this.#gateways.values()].find(
      (config) => config.asked("guard", id) ?? config.asked("backend", id),
    );
  }

  #config(gateway: string): GatewayConfig {
    const known = this.#gateways.get(gateway);
    if (known !== undefined) return known;
    const { bind, trustedHops = 0, lingerMs = 5_000, tracing, serve } = this.#options;
    const { onRequestEnd, onlySampled = false } = this.#options;
    const path = serve?.trafficLog ?? this.#trafficPath(gateway);
    const config = new GatewayConfig({
      gateway,
      bind: ({ port }: PortItem) => ({ address: bind.address, port: bind.portMap?.(port) ?? port }),
      trustedHops,
      accessLogs: (port) =>
        portLogs(port, {
          path,
          isRecorded: serve?.isRecorded === true,
          isPrinted: onRequestEnd !== undefined,
          onlySampled,
          isTraced: tracing !== undefined,
        }),
      isRecorded: onRequestEnd !== undefined || serve?.isRecorded === true,
      handshakeLog: path === undefined ? undefined : handshakeLog(path),
      lingerMs,
      ...gatewayTracing(gateway, tracing),
    });
    if (this.#handler !== undefined) config.status.onReport(this.#handler);
    this.#gateways.set(gateway, config);
    return config;
  }

  #trafficPath(gateway: string): string | undefined {
    if (this.#options.traffic === undefined || this.#directory === undefined) return undefined;
    return join(this.#directory, `${encodeURIComponent(gateway)}.traffic`);
  }

  #release(gateway: string, config: GatewayConfig): void {
    const leaving = this.#processes.get(gateway);
    this.#processes.delete(gateway);
    if (leaving !== undefined) {
      this.#leaving.add(leaving);
      void leaving.close(DEFAULT_GRACE_MS).then(() => {
        this.#leaving.delete(leaving);
        if (!this.#processes.has(gateway)) this.#closeTrafficLog(gateway);
      });
    }
    // Envoys that others run may stay connected, and must find later resources in the same store.
    if (this.#options.serve !== undefined) return;
    this.#gateways.delete(gateway);
    config.close();
  }

  #closeTrafficLog(gateway: string): void {
    void this.#trafficLogs.get(gateway)?.close();
    this.#trafficLogs.delete(gateway);
  }

  #supervise(gateway: string): void {
    const { supervise, onRequestEnd, onlySampled, onLog = () => {} } = this.#options;
    if (supervise === undefined || this.#directory === undefined || this.#processes.has(gateway)) return;
    const name = `envoy-${this.#started++}`;
    const process = new EnvoyProcess({
      binary: supervise.binary,
      directory: this.#directory,
      name,
      gateway,
      serverPath: join(this.#directory, "ads"),
      concurrency: supervise.concurrency,
      maxConnections: supervise.maxConnections ?? 20_000,
      isTraced: this.#options.tracing !== undefined,
      drainSeconds: supervise.drainSeconds ?? 30,
      extraArguments: supervise.extraArguments ?? [],
      onLine: (line) => {
        const record = onRequestEnd === undefined ? undefined : readAccessLog(gateway, line);
        if (record !== undefined && (onlySampled !== true || record.trace?.isSampled === true))
          onRequestEnd?.(record);
      },
      onLog,
      onExit: (problem) => {
        onLog(problem);
        this.#gateways.get(gateway)?.status.unserved(name, problem);
      },
    });
    this.#processes.set(gateway, process);
    const { traffic: counts } = this.#options;
    const path = this.#trafficPath(gateway);
    if (counts === undefined || path === undefined || this.#trafficLogs.has(gateway)) return;
    const ask = async (method: "GET" | "POST", at: string): Promise<string> =>
      (await this.#processes.get(gateway)?.admin(method, at)) ?? "";
    this.#trafficLogs.set(gateway, new TrafficLog({ path, gateway, counts, ask }));
  }

  #server(gatewayOf: NonNullable<EnvoyOptions["serve"]>["gatewayOf"]): AdsServer {
    return new AdsServer({
      gatewayOf,
      storeOf: (gateway) => this.#config(gateway).store,
      limits: { ...defaultStreamLimits, ...this.#options.limits },
      methods: new Map([
        [CHECK_METHOD, (stream) => serveCheck(stream, this.#authenticator)],
        [COUNT_METHOD, countBody],
      ]),
      onAnswer: (replica, answer) => this.#onAnswer(replica, answer),
      onLeft: ({ gateway, node }) => {
        // The stream of a supervised Envoy may break while it serves; its process decides.
        if (!this.#processes.has(gateway)) this.#gateways.get(gateway)?.replicaLeft(node.id);
      },
    });
  }

  #onAnswer({ gateway, stream, node }: EnvoyReplica, answer: Answer): void {
    const config = this.#gateways.get(gateway);
    if (config === undefined) return;
    const { kind, name, problem } = answer;
    if (problem !== undefined && !config.isProbe(answer)) {
      // Envoy's own text quotes the resource: headers and more of whatever tenants.
      this.#options.onLog?.(`Envoy refuses the ${kind} ${name}`);
      this.#options.onDebug?.(`Envoy refuses the ${kind} ${name}: ${problem}`);
    }
    const port = kind === "listener" && problem === undefined ? config.tcpPort(name) : undefined;
    // Envoy answers before its threads listen.
    if (port !== undefined && (this.#processes.has(gateway) || this.#options.serve?.isLocal === true))
      void awaitOpenPort(port).then(() => config.answered(node.id, answer));
    else config.answered(node.id, answer);
    if (kind === "listener" && problem !== undefined && !config.isProbe(answer)) {
      // The program that has the port may close it.
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        stream.retry(kind, name);
      }, RETRY_PORT_MS);
      this.#timers.add(timer.unref());
    }
  }
}

export function createEnvoyDataPlane(options: EnvoyOptions): EnvoyDataPlane {
  return new EnvoyDataPlane(options);
}
