/**
 * Serves Gateways through Cloudflare Tunnel: a connector brings the requests of the edge to one
 * loopback port per Gateway, and another data plane, which is handed in and knows nothing of
 * tunnels, routes them there (inner-plan.ts). So every feature of a route works behind the tunnel
 * as it does without one. Nothing but Host decides whose routes a request meets.
 *
 * A listener is programmed when the inner data plane serves it and a connector is connected. While
 * none is, it is pending.
 */
import type { ItemReport } from "../../plan/item-report.ts";
import type { ItemId, PlanDelta } from "../../plan/plan.ts";
import type { CloseOptions, DataPlane } from "../dataplane.ts";
import { ReportQueue } from "../report-queue.ts";
import type { TunnelLink, TunnelState } from "./cloudflare/tunnel-link.ts";
import { tunnelFeatures } from "./features.ts";
import { GrpcUse } from "./grpc-use.ts";
import { InnerPlan, innerPortId } from "./inner-plan.ts";
import type { OriginCertificate } from "./origin-certificate.ts";
import { OriginPorts } from "./origin-ports.ts";
import { OriginTls } from "./origin-tls.ts";

export interface TunnelDataPlaneOptions {
  /** Must open every port on `address` at its own number, for connectors of this machine alone. */
  readonly inner: DataPlane;
  readonly link: TunnelLink;
  /** A loopback address. */
  readonly address: string;
  /** Each Gateway takes two ports from here on: cleartext, and TLS for gRPC. */
  readonly firstPort: number;
  /** Shown to the connector where it speaks HTTP/2. */
  readonly certificate: OriginCertificate;
  /** Called with every change of a Gateway's tunnel: its address, or why it has none. */
  readonly onTunnel?: (gateway: string, state: TunnelState) => void;
}

const NO_CONNECTOR = {
  reason: "Pending",
  message: "no connector of the tunnel is connected",
} as const;

export class TunnelDataPlane implements DataPlane {
  readonly features: ReadonlySet<string>;
  readonly #options: TunnelDataPlaneOptions;
  readonly #ports: OriginPorts;
  readonly #plan: InnerPlan;
  readonly #grpc: GrpcUse = new GrpcUse();
  readonly #gateways: Map<ItemId, string> = new Map();
  readonly #gatewayOfPort: Map<ItemId, string> = new Map();
  readonly #tls: Map<string, OriginTls> = new Map();
  /** Gateways whose TLS port is not open (yet), and why. */
  readonly #tlsProblems: Map<string, string | undefined> = new Map();
  readonly #states: Map<string, TunnelState> = new Map();
  readonly #innerReports: Map<ItemId, ItemReport> = new Map();
  readonly #certificates: Set<ItemId> = new Set();
  /** Ports and listeners by Gateway: all of them change when a connector comes or goes. */
  readonly #members: Map<string, Set<ItemId>> = new Map();
  /** Listeners by the inner one that serves them, and back. */
  readonly #servedBy: Map<ItemId, Set<ItemId>> = new Map();
  readonly #serverOf: Map<ItemId, ItemId> = new Map();
  readonly #reports: ReportQueue = new ReportQueue((id) => this.#reportOf(id));

  constructor(options: TunnelDataPlaneOptions) {
    this.#options = options;
    this.features = tunnelFeatures(options.inner.features);
    this.#ports = new OriginPorts(options.firstPort);
    this.#plan = new InnerPlan((gateway) => this.#ports.of(gateway).cleartext);
    options.inner.onReport((reports) => this.#learn(reports));
    options.link.onState((gateway, state) => this.#learnState(gateway, state));
  }

  apply(delta: PlanDelta): void {
    this.#follow(delta);
    const { delta: inner, listeners } = this.#plan.apply(delta);
    for (const id of inner.removes) this.#innerReports.delete(id);
    for (const { id } of inner.upserts) this.#innerReports.delete(id);
    this.#options.inner.apply(inner);
    this.#lead(delta);
    const touched = delta.upserts.filter(({ type }) => type === "port").map(({ id }) => id);
    this.#report([...listeners, ...touched]);
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onReport(handler);
  }

  async served(gateway?: string): Promise<boolean> {
    return (await this.#options.inner.served?.(gateway)) ?? true;
  }

  /** The edge stops sending before the proxy stops serving. */
  async close(options: CloseOptions = {}): Promise<void> {
    const { link, inner } = this.#options;
    await link.close();
    await Promise.all([...this.#tls.values()].map((front) => front.close(options.graceMs ?? 0)));
    await inner.close(options);
  }

  #follow({ upserts, removes }: PlanDelta): void {
    for (const id of removes) {
      const gateway = this.#plan.gatewayOf(id);
      if (gateway !== undefined) this.#members.get(gateway)?.delete(id);
      this.#reports.forget(id);
      this.#certificates.delete(id);
      this.#serve(id, undefined);
    }
    for (const { type, id, gateway } of upserts) {
      if (type === "certificate") this.#certificates.add(id);
      if (type === "certificate" || type === "port" || type === "listener") this.#reports.renew(id);
      if (type === "port" || type === "listener") membersOf(this.#members, gateway).add(id);
    }
  }

  /**
   * Tells the link where each Gateway's requests go: to another port as soon as one of its routes
   * is gRPC.
   */
  #lead(delta: PlanDelta): void {
    const changed = new Set(this.#grpc.apply(delta));
    for (const id of delta.removes) {
      const gateway = this.#gateways.get(id);
      if (gateway === undefined) continue;
      this.#gateways.delete(id);
      this.#gatewayOfPort.delete(innerPortId(gateway));
      this.#release(gateway);
    }
    for (const item of delta.upserts) {
      if (item.type !== "gateway") continue;
      this.#gateways.set(item.id, item.gateway);
      this.#gatewayOfPort.set(innerPortId(item.gateway), item.gateway);
      changed.add(item.gateway);
    }
    for (const gateway of changed) {
      if (this.#gatewayOfPort.has(innerPortId(gateway))) this.#leadGateway(gateway);
    }
  }

  #leadGateway(gateway: string): void {
    const { address, certificate, link } = this.#options;
    const { cleartext, tls } = this.#ports.of(gateway);
    const http2 = this.#grpc.usedBy(gateway);
    if (http2 && !this.#tls.has(gateway)) {
      this.#tlsProblems.set(gateway, undefined);
      const onOutcome = (problem: string | undefined): void => this.#learnTls(gateway, problem);
      this.#tls.set(
        gateway,
        new OriginTls({ address, port: tls, target: cleartext, certificate, onOutcome }),
      );
    }
    link.lead(gateway, { address, port: http2 ? tls : cleartext, http2 });
  }

  #release(gateway: string): void {
    this.#options.link.release(gateway);
    void this.#tls.get(gateway)?.close(0);
    this.#tls.delete(gateway);
    this.#tlsProblems.delete(gateway);
    this.#states.delete(gateway);
    this.#members.delete(gateway);
    this.#ports.free(gateway);
  }

  #learn(reports: readonly ItemReport[]): void {
    const changed: ItemId[] = [];
    for (const report of reports) {
      this.#innerReports.set(report.id, report);
      if (this.#certificates.has(report.id)) changed.push(report.id);
      changed.push(...(this.#servedBy.get(report.id) ?? []));
      const gateway = this.#gatewayOfPort.get(report.id);
      if (gateway !== undefined) changed.push(...(this.#members.get(gateway) ?? []));
    }
    this.#report(changed);
  }

  #learnTls(gateway: string, problem: string | undefined): void {
    if (problem === undefined) this.#tlsProblems.delete(gateway);
    else if (this.#tls.has(gateway)) this.#tlsProblems.set(gateway, problem);
    this.#report(this.#members.get(gateway) ?? []);
  }

  #learnState(gateway: string, state: TunnelState): void {
    this.#states.set(gateway, state);
    this.#options.onTunnel?.(gateway, state);
    this.#report(this.#members.get(gateway) ?? []);
  }

  #report(ids: Iterable<ItemId>): void {
    for (const id of ids) this.#reports.change(id);
  }

  /** Undefined while the item is pending. */
  #reportOf(id: ItemId): ItemReport | undefined {
    if (this.#certificates.has(id)) return this.#innerReports.get(id);
    const gateway = this.#plan.gatewayOf(id);
    if (gateway === undefined) return undefined;
    if (this.#plan.isPort(id)) return this.#through(id, gateway, innerPortId(gateway));
    const place = this.#plan.placeOf(id);
    if (place === undefined) return undefined;
    if (place.state === "refused") {
      return { id, state: "rejected", reason: place.reason, message: place.message };
    }
    this.#serve(id, place.by);
    return this.#through(id, gateway, place.by);
  }

  #serve(id: ItemId, by: ItemId | undefined): void {
    const before = this.#serverOf.get(id);
    if (before === by) return;
    if (before !== undefined) {
      const served = this.#servedBy.get(before);
      served?.delete(id);
      if (served?.size === 0) this.#servedBy.delete(before);
    }
    if (by === undefined) {
      this.#serverOf.delete(id);
      return;
    }
    this.#serverOf.set(id, by);
    membersOf(this.#servedBy, by).add(id);
  }

  #through(id: ItemId, gateway: string, inner: ItemId): ItemReport | undefined {
    const report = this.#innerReports.get(inner);
    if (report?.state === "rejected") return { ...report, id };
    const closed = this.#tlsProblems.get(gateway);
    if (closed !== undefined) return { id, state: "rejected", reason: "PortUnavailable", message: closed };
    const state = this.#states.get(gateway);
    if (report === undefined || state === undefined || this.#tlsProblems.has(gateway)) return undefined;
    return state.connections > 0 ? { id, state: "programmed" } : { id, state: "rejected", ...NO_CONNECTOR };
  }
}

function membersOf(map: Map<string, Set<ItemId>>, key: string): Set<ItemId> {
  const members = map.get(key) ?? new Set();
  map.set(key, members);
  return members;
}
