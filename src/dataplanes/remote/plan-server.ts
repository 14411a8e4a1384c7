/**
 * The controller's end of the stream, seen by the rest as one data plane. Items are encoded once, whoever asks.
 * Anybody who reaches the port may knock: until a peer has shown which pod it is, it costs next to nothing, and each refusal is told.
 */
import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { ItemId, PlanDelta, PlanItem } from "../../plan/plan.ts";
import type { CloseOptions, DataPlane, ItemReport } from "../dataplane.ts";
import { Confirmations, type LagLimits, type ServedPod, type Standing } from "./confirmations.ts";
import { LineTooLong, readLines } from "./lines.ts";
import { PlanDigest } from "./plan-digest.ts";
import { Progress, type ProgressStage } from "./progress.ts";
import { digestOf, encodeItem, PLAN_PATH, type PodMessage } from "./protocol.ts";
import { type EncodedItem, Replica, type ReplicaLag } from "./replica.ts";
import { ReplicaReports, soundReports } from "./replica-reports.ts";
import { STRANGER_LIMITS, type StrangerLimits, Strangers } from "./strangers.ts";

export interface PlanServerOptions {
  readonly features: ReadonlySet<string>;
  readonly certificate: string;
  readonly key: string;
  readonly address: string;
  readonly port: number;
  /** Whether the bearer of a token is that pod and may have the items of that Gateway (`namespace/name`). */
  readonly authorize: (token: string, claim: PodClaim) => Promise<boolean>;
  readonly onRefused?: (refusal: StreamRefusal) => void;
  readonly onReplicas?: (gateway: string, connected: number) => void;
  /** Called with every change of which pods of a Gateway lag behind its plan. */
  readonly onStanding?: (gateway: string, standing: Standing) => void;
  /** When what is being applied was seen first (as `performance.now()` counts); changes of which it is not known are not followed. */
  readonly since?: () => number | undefined;
  /** All connected pods that a change concerns have been sent it, or have acknowledged it. */
  readonly onProgress?: (stage: ProgressStage, seconds: number) => void;
  readonly limits?: Partial<StrangerLimits>;
  readonly lag?: Partial<LagLimits>;
}

export interface PodClaim {
  readonly gateway: string;
  readonly pod: string;
}

/**
 * `token`: none was shown. `hello`: what came is no hello, or came too late. `identity`: the token is not that pod's. `elsewhere`: the pod is connected from another
 * address. `crowd`: too many strangers at once.
 */
export type RefusalReason = "token" | "hello" | "identity" | "elsewhere" | "crowd";

export interface StreamRefusal {
  readonly reason: RefusalReason;
  readonly peer: string;
  /** What the peer claimed to be, if it came so far. */
  readonly claim?: PodClaim;
}

const MAX_LINE = 16 * 1024 * 1024;
const MAX_NAME = 520;
const MAX_DIGEST = 64;
const PING_MS = 10_000;
const LOOK_MS = 1_000;
/** For a peer to read why it was refused. */
const GOODBYE_MS = 500;
const NO_ITEMS: ReadonlyMap<ItemId, EncodedItem> = new Map();

export class PlanServer implements DataPlane {
  readonly features: ReadonlySet<string>;
  readonly #options: PlanServerOptions;
  readonly #server: Http2SecureServer;
  readonly #visits: Map<ServerHttp2Session, Visit> = new Map();
  readonly #items: Map<string, Map<ItemId, EncodedItem>> = new Map();
  readonly #digests: Map<string, PlanDigest> = new Map();
  readonly #gatewayOf: Map<ItemId, string> = new Map();
  readonly #replicas: Map<string, Set<Replica>> = new Map();
  readonly #reports: ReplicaReports = new ReplicaReports();
  readonly #limits: StrangerLimits;
  readonly #strangers: Strangers;
  readonly #progress: Progress;
  readonly #confirmations: Confirmations;
  readonly #looking: NodeJS.Timeout;
  /** Counts the states of the plan, so that a pod can say which one it has. */
  #state = 0;

  constructor(options: PlanServerOptions) {
    this.features = options.features;
    this.#options = options;
    this.#limits = { ...STRANGER_LIMITS, ...options.limits };
    this.#strangers = new Strangers(this.#limits);
    this.#progress = new Progress(
      (gateway) => this.#replicas.get(gateway) ?? [],
      (stage, seconds) => options.onProgress?.(stage, seconds),
    );
    this.#confirmations = new Confirmations({
      tell: (gateway, standing) => options.onStanding?.(gateway, standing),
      ...(options.lag === undefined ? {} : { limits: options.lag }),
    });
    this.#looking = setInterval(() => this.#confirmations.look(), LOOK_MS).unref();
    this.#server = createSecureServer({
      cert: options.certificate,
      key: options.key,
      minVersion: "TLSv1.3",
      handshakeTimeout: this.#limits.helloMs,
      settings: { maxConcurrentStreams: 2 },
    });
    this.#server.on("session", (session) => this.#meet(session));
    this.#server.on("stream", (stream, headers) => {
      stream.on("error", () => stream.destroy());
      const visit = this.#visits.get(stream.session as ServerHttp2Session);
      if (visit === undefined || visit.isRefused) return stream.destroy();
      if (headers[":method"] !== "POST" || headers[":path"] !== PLAN_PATH)
        return this.#refuse(visit, stream, { status: 404, reason: "hello" });
      const token = /^Bearer (.+)$/.exec(headers["authorization"] ?? "")?.[1];
      if (token === undefined) return this.#refuse(visit, stream, { status: 401, reason: "token" });
      return void this.#serve(visit, stream, token).catch(() => stream.destroy());
    });
  }

  /** How far each connected pod is behind. */
  get lags(): readonly ReplicaLag[] {
    return [...this.#replicas.values()].flatMap((replicas) =>
      [...replicas].filter(({ isServed }) => isServed).map(({ lag }) => lag),
    );
  }

  /** How the pods of each Gateway stand to its plan. */
  get standings(): ReadonlyMap<string, Standing> {
    return this.#confirmations.standings();
  }

  /** Which pods a Gateway has, connected or not. */
  expect(gateway: string, pods: readonly ServedPod[] | undefined): void {
    this.#confirmations.exist(gateway, pods);
  }

  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#options.port, this.#options.address, () => {
        this.#server.removeListener("error", reject);
        const bound = this.#server.address();
        resolve(typeof bound === "object" && bound !== null ? bound.port : this.#options.port);
      });
    });
  }

  /** Proves itself by another certificate from now on; streams that are open stay so. */
  renew({ certificate, key }: Pick<PlanServerOptions, "certificate" | "key">): void {
    this.#server.setSecureContext({ cert: certificate, key, minVersion: "TLSv1.3" });
  }

  apply({ upserts, removes }: PlanDelta): void {
    const changed = new Map<string, ItemId[]>();
    const note = (gateway: string, id: ItemId): void => {
      const ids = changed.get(gateway);
      if (ids === undefined) changed.set(gateway, [id]);
      else ids.push(id);
    };
    for (const item of upserts) {
      this.#store(item);
      note(item.gateway, item.id);
    }
    for (const id of removes) {
      const gateway = this.#gatewayOf.get(id);
      if (gateway === undefined) continue;
      this.#gatewayOf.delete(id);
      this.#drop(gateway, id);
      note(gateway, id);
    }
    this.#reports.drop(removes);
    this.#state++;
    for (const [gateway, ids] of changed) {
      const items = this.#items.get(gateway) ?? NO_ITEMS;
      this.#confirmations.planned(gateway, this.#digests.get(gateway)?.text ?? "");
      for (const replica of this.#replicas.get(gateway) ?? []) replica.send(ids, items, this.#state);
    }
    const since = this.#options.since?.();
    if (since !== undefined) this.#progress.begin(this.#state, since, new Set(changed.keys()));
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onChange(handler);
  }

  async close(_options?: CloseOptions): Promise<void> {
    clearInterval(this.#looking);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#visits.keys()) session.destroy();
    await closed;
  }

  #store(item: PlanItem): void {
    const text = encodeItem(item);
    const digest = digestOf(text);
    const items = this.#items.get(item.gateway) ?? new Map<ItemId, EncodedItem>();
    const whole = this.#digests.get(item.gateway) ?? new PlanDigest();
    this.#drop(item.gateway, item.id);
    this.#items.set(item.gateway, items.set(item.id, { text, digest }));
    whole.toggle(digest);
    this.#digests.set(item.gateway, whole);
    this.#gatewayOf.set(item.id, item.gateway);
  }

  #drop(gateway: string, id: ItemId): void {
    const items = this.#items.get(gateway);
    const held = items?.get(id);
    if (held === undefined) return;
    items?.delete(id);
    this.#digests.get(gateway)?.toggle(held.digest);
  }

  #meet(session: ServerHttp2Session): void {
    const peer = session.socket.remoteAddress ?? "";
    session.on("error", () => session.destroy());
    const leave = this.#strangers.enter(peer);
    if (leave === undefined) {
      this.#options.onRefused?.({ reason: "crowd", peer });
      session.destroy();
      return;
    }
    const limit = setTimeout(() => {
      this.#options.onRefused?.({ reason: "hello", peer });
      session.destroy();
    }, this.#limits.helloMs);
    this.#visits.set(session, { session, peer, limit, leave, isRefused: false });
    let answered = true;
    const timer = setInterval(() => {
      // A session that has ended throws at a ping, and only later says that it is closed.
      if (!answered || session.destroyed) return session.destroy();
      answered = false;
      return void session.ping(() => {
        answered = true;
      });
    }, PING_MS);
    timer.unref();
    session.once("close", () => {
      clearInterval(timer);
      clearTimeout(limit);
      this.#visits.delete(session);
      setTimeout(leave, this.#limits.restMs).unref();
    });
  }

  async #serve(visit: Visit, stream: ServerHttp2Stream, token: string): Promise<void> {
    let replica: Replica | undefined;
    const limit = (): number => (replica === undefined ? this.#limits.helloBytes : MAX_LINE);
    try {
      for await (const line of readLines(stream, limit)) {
        const message = parsed(line);
        if (message?.type === "hello" && replica === undefined) {
          replica = await this.#admit(visit, stream, { token, hello: message });
          if (replica === undefined) return;
        } else if (message === undefined || replica === undefined || !this.#take(replica, message)) {
          return this.#refuse(visit, stream, { status: 400, reason: "hello" });
        }
      }
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error;
      this.#refuse(visit, stream, { status: 400, reason: "hello" });
    } finally {
      if (replica !== undefined) this.#dismiss(replica);
    }
  }

  async #admit(
    visit: Visit,
    stream: ServerHttp2Stream,
    { token, hello }: { readonly token: string; readonly hello: Hello },
  ): Promise<Replica | undefined> {
    const { gateway, pod } = hello;
    const claim = { gateway, pod };
    if (!(await this.#options.authorize(token, claim))) {
      this.#refuse(visit, stream, { status: 403, reason: "identity", claim });
      return undefined;
    }
    if (stream.destroyed) return undefined;
    const replicas = this.#replicas.get(gateway) ?? new Set();
    for (const other of [...replicas].filter((each) => each.pod === pod)) {
      // A token that somebody else got hold of is of no use while its pod is there.
      if (other.address !== visit.peer) {
        this.#refuse(visit, stream, { status: 409, reason: "elsewhere", claim });
        return undefined;
      }
      this.#dismiss(other);
      other.stream.destroy();
    }
    clearTimeout(visit.limit);
    visit.leave();
    stream.respond({ ":status": 200, "content-type": "application/x-ndjson" });
    const replica = new Replica(stream, visit.peer, hello);
    this.#replicas.set(gateway, replicas.add(replica));
    this.#options.onReplicas?.(gateway, replicas.size);
    this.#confirmations.joined(gateway, pod);
    stream.on("drain", () => {
      replica.drained(this.#items.get(gateway) ?? NO_ITEMS, this.#state);
      this.#progress.advance();
    });
    return replica;
  }

  /** What an admitted pod says; false where it makes no sense. */
  #take(replica: Replica, message: PodMessage): boolean {
    switch (message.type) {
      case "serve":
        // Once: each time would be another whole plan to be sent.
        if (replica.isServed) return false;
        this.#begin(replica, message.have);
        return true;
      case "report":
        this.#reports.take(replica.id, this.#own(replica, message.reports));
        if (isDigest(message.holds)) this.#confirmations.said(replica.gateway, replica.pod, message.holds);
        return true;
      case "acknowledge":
        replica.acknowledge(message.state);
        this.#progress.advance();
        return true;
      default:
        return false;
    }
  }

  #begin(replica: Replica, have: Readonly<Record<ItemId, string>>): void {
    const items = this.#items.get(replica.gateway) ?? NO_ITEMS;
    const ids = [
      ...[...items].filter(([id, { digest }]) => have[id] !== digest).map(([id]) => id),
      ...Object.keys(have).filter((id) => !items.has(id)),
    ];
    replica.begin(ids, items, this.#state);
  }

  #dismiss(replica: Replica): void {
    const replicas = this.#replicas.get(replica.gateway);
    if (replicas?.delete(replica) !== true) return;
    if (replicas.size === 0) this.#replicas.delete(replica.gateway);
    this.#reports.forget(replica.id);
    this.#confirmations.left(replica.gateway, replica.pod);
    this.#options.onReplicas?.(replica.gateway, replicas.size);
    this.#progress.advance();
  }

  /** A pod speaks for the items of its own Gateway only. */
  #own({ gateway }: Replica, reports: unknown): readonly ItemReport[] {
    return soundReports(reports).filter(({ id }) => this.#gatewayOf.get(id) === gateway);
  }

  /** Ends the whole session, as soon as the peer had a chance to read why. */
  #refuse(
    visit: Visit,
    stream: ServerHttp2Stream,
    { status, ...refusal }: Omit<StreamRefusal, "peer"> & { readonly status: number },
  ): void {
    this.#options.onRefused?.({ peer: visit.peer, ...refusal });
    visit.isRefused = true;
    clearTimeout(visit.limit);
    setTimeout(() => visit.session.destroy(), GOODBYE_MS).unref();
    if (!stream.headersSent && !stream.destroyed) stream.respond({ ":status": status }, { endStream: true });
    else stream.destroy();
  }
}

/** A session, and what is to be done once its peer is no stranger any more. */
interface Visit {
  readonly session: ServerHttp2Session;
  readonly peer: string;
  readonly limit: NodeJS.Timeout;
  readonly leave: () => void;
  isRefused: boolean;
}

type Hello = Extract<PodMessage, { readonly type: "hello" }>;

/** A message with the fields that its type has; what is in the lists is looked at later. */
function parsed(line: string): PodMessage | undefined {
  let message: Partial<Record<string, unknown>>;
  try {
    message = JSON.parse(line) ?? {};
  } catch {
    return undefined;
  }
  const { type, gateway, pod, have } = message;
  if (type === "hello" && !(isName(gateway) && isName(pod))) return undefined;
  if (type === "serve" && (typeof have !== "object" || have === null)) return undefined;
  return message as unknown as PodMessage;
}

function isDigest(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_DIGEST;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_NAME;
}
