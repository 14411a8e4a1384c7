/**
 * Publishes the plan of every Gateway to its connected pods, and collects their reports. To the
 * controller it is one data plane. Items are encoded once for all pods. Streams are opened in
 * plan-server.ts; here they are channels.
 */
import { type ItemReport, REPORTED_TYPES } from "../../../plan/item-report.ts";
import type { ItemId, PlanDelta, PlanItem } from "../../../plan/plan.ts";
import type { DataPlane } from "../../dataplane.ts";
import { PlanDigest } from "../protocol/plan-digest.ts";
import {
  digestOf,
  encodeItem,
  type HelloMessage,
  type PodMessage,
  type ReportMessage,
} from "../protocol/protocol.ts";
import { isDigest } from "../protocol/sound-reports.ts";
import { Confirmations, type ConfirmedReplicas, type LagLimits, type ServedPod } from "./confirmations.ts";
import { Progress, type ProgressStage } from "./progress.ts";
import { type EncodedItem, type PodChannel, Replica, type ReplicaLag } from "./replica.ts";
import { REPORT_LIMITS, ReplicaReports } from "./replica-reports.ts";

export interface PlanPublisherOptions {
  readonly features: ReadonlySet<string>;
  /** The release of this program. Another release may encode items differently. */
  readonly release?: string;
  readonly onReplicas?: (gateway: string, connected: number) => void;
  /** Called when the set of lagging pods of a Gateway changes. */
  readonly onConfirmed?: (gateway: string, confirmed: ConfirmedReplicas) => void;
  /**
   * When the change that is being applied was first seen, in the time of `performance.now()`.
   * Undefined: its progress is not measured.
   */
  readonly since?: () => number | undefined;
  /** All connected pods that a change concerns have been sent it, or have acknowledged it. */
  readonly onProgress?: (stage: ProgressStage, seconds: number) => void;
  readonly lag?: Partial<LagLimits>;
}

const LOOK_MS = 500;
/** The interval at which a lagging pod is offered the leader's plan. */
const OFFER_MS = 10_000;
/**
 * A pod that has acknowledged everything but serves another digest for this long has its stream
 * closed. When it reconnects it is sent the difference.
 */
const DIVERGED_MS = 60_000;
const NO_ITEMS: ReadonlyMap<ItemId, EncodedItem> = new Map();

interface GatewayPlan {
  readonly items: Map<ItemId, EncodedItem>;
  readonly digest: PlanDigest;
  /** When it changed last. */
  changedAt: number;
}

export class PlanPublisher implements DataPlane {
  readonly features: ReadonlySet<string>;
  readonly #options: PlanPublisherOptions;
  readonly #plans: Map<string, GatewayPlan> = new Map();
  readonly #gatewayOf: Map<ItemId, string> = new Map();
  readonly #replicas: Map<string, Set<Replica>> = new Map();
  readonly #reports: ReplicaReports;
  readonly #progress: Progress;
  readonly #confirmations: Confirmations;
  readonly #looking: NodeJS.Timeout;
  /** Counts the states of the plan, so that a pod can say which one it has. */
  #state = 0;
  #isLeading = false;

  constructor(options: PlanPublisherOptions) {
    this.features = options.features;
    this.#options = options;
    this.#reports = new ReplicaReports({
      gatewayOf: (id) => this.#gatewayOf.get(id),
      versionOf: (id) => this.#plans.get(this.#gatewayOf.get(id) ?? "")?.items.get(id)?.digest,
      release: options.release ?? "",
    });
    this.#progress = new Progress(
      (gateway) => this.#replicas.get(gateway) ?? [],
      (stage, seconds) => options.onProgress?.(stage, seconds),
    );
    this.#confirmations = new Confirmations({
      tell: (gateway, confirmed) => options.onConfirmed?.(gateway, confirmed),
      ...(options.lag === undefined ? {} : { limits: options.lag }),
    });
    this.#looking = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** How far each connected pod is behind. */
  get lags(): readonly ReplicaLag[] {
    return [...this.#replicas.values()].flatMap((replicas) =>
      [...replicas].filter(({ isServed }) => isServed).map(({ lag }) => lag),
    );
  }

  /** For each Gateway how many pods serve it, and which of them lag. */
  get confirmed(): ReadonlyMap<string, ConfirmedReplicas> {
    return this.#confirmations.confirmed();
  }

  /** Which pods a Gateway has, connected or not. */
  expect(gateway: string, pods: readonly ServedPod[] | undefined): void {
    this.#confirmations.exist(gateway, pods);
  }

  /** Statuses are about the leader's plan, so the leader offers it to pods that lag behind it. */
  lead(isLeading: boolean): void {
    this.#isLeading = isLeading;
  }

  apply({ upserts, removes }: PlanDelta): void {
    const changed = new Map<string, { id: ItemId; awaited: boolean }[]>();
    const removed = new Map<string, ItemId[]>();
    for (const item of upserts) {
      if (!this.#store(item)) continue;
      const { gateway, id, type } = item;
      listAt(changed, gateway).push({ id, awaited: REPORTED_TYPES.has(type) });
    }
    for (const id of removes) {
      const gateway = this.#gatewayOf.get(id);
      if (gateway === undefined) continue;
      this.#gatewayOf.delete(id);
      this.#drop(gateway, id);
      listAt(removed, gateway).push(id);
    }
    this.#state++;
    const gateways = new Set([...changed.keys(), ...removed.keys()]);
    for (const gateway of gateways) {
      const came = changed.get(gateway) ?? [];
      const went = removed.get(gateway) ?? [];
      this.#publish(gateway, [...came.map(({ id }) => id), ...went]);
      this.#reports.removed(gateway, went);
      this.#reports.planned(gateway, came);
    }
    const since = this.#options.since?.();
    if (since !== undefined) this.#progress.begin(this.#state, since, gateways);
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onChange(handler);
  }

  async close(): Promise<void> {
    clearInterval(this.#looking);
  }

  /** The connected streams of a pod: more than one while a new stream replaces an old one. */
  streamsOf({ gateway, pod }: Pick<HelloMessage, "gateway" | "pod">): readonly Replica[] {
    return [...(this.#replicas.get(gateway) ?? [])].filter((each) => each.pod === pod);
  }

  /** Adds the stream of an authenticated pod. It replaces earlier streams of the same pod. */
  admit(channel: PodChannel, hello: HelloMessage, address: string): Replica {
    for (const other of this.streamsOf(hello)) {
      this.dismiss(other);
      other.channel.close();
    }
    const { gateway, pod } = hello;
    const replica = new Replica(channel, hello, { address, release: this.#options.release ?? "" });
    const replicas = this.#replicas.get(gateway) ?? new Set();
    this.#replicas.set(gateway, replicas.add(replica));
    this.#options.onReplicas?.(gateway, replicas.size);
    this.#confirmations.joined(gateway, pod);
    return replica;
  }

  /** Takes a message of an admitted pod. False if the message is not valid. */
  take(replica: Replica, message: PodMessage): boolean {
    // Another stream of this pod has replaced this one.
    if (this.#replicas.get(replica.gateway)?.has(replica) !== true) return true;
    switch (message.type) {
      case "serve":
        // Only once per stream: each time could cost a whole plan.
        if (replica.isServed) return false;
        this.#begin(replica, message.have);
        return true;
      case "report":
        this.#hear(replica, message);
        return true;
      case "acknowledge":
        replica.acknowledge(message.state);
        this.#progress.advance();
        return true;
      default:
        return false;
    }
  }

  /** The channel accepts more again. */
  drained(replica: Replica): void {
    replica.drained(this.#plans.get(replica.gateway)?.items ?? NO_ITEMS, this.#state);
    this.#progress.advance();
  }

  /** The stream has ended. */
  dismiss(replica: Replica): void {
    const replicas = this.#replicas.get(replica.gateway);
    if (replicas?.delete(replica) !== true) return;
    if (replicas.size === 0) this.#replicas.delete(replica.gateway);
    this.#reports.forget(replica);
    this.#confirmations.left(replica.gateway, replica.pod);
    this.#options.onReplicas?.(replica.gateway, replicas.size);
    this.#progress.advance();
  }

  /** False if the item has not changed. */
  #store(item: PlanItem): boolean {
    const text = encodeItem(item);
    const digest = digestOf(text);
    const plan = this.#plans.get(item.gateway) ?? {
      items: new Map<ItemId, EncodedItem>(),
      digest: new PlanDigest(),
      changedAt: 0,
    };
    if (plan.items.get(item.id)?.digest === digest) return false;
    this.#drop(item.gateway, item.id);
    plan.items.set(item.id, { text, digest });
    plan.digest.toggle(digest);
    this.#plans.set(item.gateway, plan);
    this.#gatewayOf.set(item.id, item.gateway);
    return true;
  }

  #drop(gateway: string, id: ItemId): void {
    const plan = this.#plans.get(gateway);
    const known = plan?.items.get(id);
    if (plan === undefined || known === undefined) return;
    plan.items.delete(id);
    plan.digest.toggle(known.digest);
    if (plan.items.size === 0) this.#plans.delete(gateway);
  }

  #publish(gateway: string, ids: readonly ItemId[]): void {
    const plan = this.#plans.get(gateway);
    if (plan !== undefined) plan.changedAt = performance.now();
    this.#confirmations.planned(gateway, plan?.digest.text ?? "");
    for (const replica of this.#replicas.get(gateway) ?? [])
      replica.send(ids, plan?.items ?? NO_ITEMS, this.#state);
  }

  #begin(replica: Replica, have: Readonly<Record<ItemId, string>>): void {
    const items = this.#plans.get(replica.gateway)?.items ?? NO_ITEMS;
    const ids = [
      ...[...items].filter(([id, { digest }]) => have[id] !== digest).map(([id]) => id),
      ...Object.keys(have).filter((id) => !items.has(id)),
    ];
    replica.begin(ids, items, this.#state);
  }

  #hear(replica: Replica, message: ReportMessage): void {
    const agrees = this.#reports.take(replica, message);
    if (message.told !== undefined) replica.compared(agrees);
    if (!isDigest(message.holds)) return;
    replica.serves(message.holds);
    this.#confirmations.said(replica.gateway, replica.pod, message.holds);
  }

  /** Checks time limits, offers the plan to lagging pods, closes diverged streams. */
  #look(): void {
    this.#confirmations.look();
    this.#reports.look((gateway) => this.#upToDate(gateway));
    for (const [gateway, replicas] of this.#replicas) {
      const lagging = new Set(this.#confirmations.lagging(gateway));
      for (const replica of replicas) {
        if (this.#isLeading && lagging.has(replica.pod)) replica.offer(OFFER_MS);
        if (this.#hasDiverged(replica)) replica.channel.close();
      }
    }
  }

  /**
   * Pods that, for `repairMs`, have served the whole plan and whose reports agree with those here.
   */
  #upToDate(gateway: string): readonly string[] {
    const plan = this.#plans.get(gateway);
    const before = performance.now() - REPORT_LIMITS.repairMs;
    if (plan === undefined || plan.changedAt > before) return [];
    return [...(this.#replicas.get(gateway) ?? [])]
      .filter(({ holds, agreesSince, protocol }) => {
        const agrees = protocol < 2 || (agreesSince !== undefined && agreesSince <= before);
        return agrees && holds?.digest === plan.digest.text && holds.since <= before;
      })
      .map(({ id }) => id);
  }

  #hasDiverged({ gateway, isSettled, holds }: Replica): boolean {
    const plan = this.#plans.get(gateway);
    if (!isSettled || holds === undefined || holds.digest === (plan?.digest.text ?? "")) return false;
    return performance.now() - Math.max(plan?.changedAt ?? 0, holds.since) >= DIVERGED_MS;
  }
}

function listAt<V>(lists: Map<string, V[]>, key: string): V[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const list: V[] = [];
  lists.set(key, list);
  return list;
}
